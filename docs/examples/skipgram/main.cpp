// SPDX-License-Identifier: Apache-2.0
#include "corpus.hpp"
#include "options.hpp"
#include "trainer.hpp"
#include "vectors.hpp"

#include <ferry/distributed/communicator/communicator.hpp>
#ifdef SKIPGRAM_MPI
#include <ferry/distributed/mpi.hpp>
#endif

#include <Kokkos_Core.hpp>

#include <cstdarg>

#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace skipgram;

constexpr const char* wordnet_folder = "/usr/share/wordnet";

corpus read_corpus(const options& chosen) {
  if (!chosen.text.empty()) return read_text(chosen.text, chosen.min_count);
  try {
    return read_wordnet(wordnet_folder, chosen.min_count);
  } catch (const std::exception& missing) {
    throw std::runtime_error(
        std::string(missing.what()) +
        "\nWithout a text this program reads the glosses of WordNet (Debian: apt-get install "
        "wordnet-base); or name a text file of your own.");
  }
}

/// Prints as one voice: rank 0, or the only one.
struct voice {
  bool speaks = true;

  [[gnu::format(printf, 2, 3)]] void operator()(const char* format, ...) const {
    if (!speaks) return;
    std::va_list values;
    va_start(values, format);
    std::vprintf(format, values);
    va_end(values);
    std::fflush(stdout);
  }
};

void print_neighbors(const corpus& text, const options& chosen, const word_vectors& vectors) {
  std::vector<std::int32_t> queries;
  for (const std::string& word : chosen.neighbors) {
    if (const auto number = find_word(text, word))
      queries.push_back(*number);
    else
      std::printf("  %-12s is not among the %zu words\n", word.c_str(), text.words.size());
  }
  if (chosen.neighbors.empty()) queries = words_to_show(text);
  for (const std::int32_t query : queries) {
    std::printf("  %-12s", text.words[static_cast<std::size_t>(query)].c_str());
    for (const neighbor& entry : nearest(vectors, query, 7))
      std::printf(" %s %.2f ", text.words[static_cast<std::size_t>(entry.word)].c_str(),
                  static_cast<double>(entry.cosine));
    std::printf("\n");
  }
}

/// Ranks that are threads: they have the devices of the machine in turn, and an instance each. On a host they
/// share the threads of Kokkos.
ferry::communicator group_of(int ranks) {
  if constexpr (ferry::HostExecutionSpace<execution>) {
    return ferry::communicator::threads(ranks);
  } else {
    const auto devices = static_cast<int>(ferry::devices().size());
    std::vector<int> ids;
    for (int r = 0; r < ranks; ++r) ids.push_back(r % devices);
    return ferry::communicator::devices(ids);
  }
}

/// Trains, on this rank where there is a communicator.
void train(const execution& exec, const options& chosen, const corpus& text,
           const ferry::communicator* comm) {
  const voice say{comm == nullptr || comm->rank() == 0};
  trainer model(exec, text, chosen, comm);
  say("tables:   %s\n          %s\n", model.centre_table().describe().c_str(),
      model.context_table().describe().c_str());
  say("runs on:  %s, %d threads at a time\n", exec.name(), exec.concurrency());
  const ranking before = model.rank_held_out();
  if (before.pairs == 0)
    throw std::runtime_error("the text is too small: it has no pair of words that could be held out");
  say("held out: %lld pairs, ranked against %zu noise words each\n", static_cast<long long>(before.pairs),
      chosen.negatives);
  say("epoch  0              AUC %.4f\n", before.auc);

  epoch_report total;
  for (std::size_t epoch = 1; epoch <= chosen.epochs; ++epoch) {
    char title[32];
    std::snprintf(title, sizeof title, "epoch %2zu", epoch);
    progress_bar progress(title, say.speaks);
    const epoch_report report = model.train(epoch, progress);
    if (report.pairs == 0)
      throw std::runtime_error("the text is too small: it has no pair of words to train on");
    const double auc = model.rank_held_out().auc;
    say("%s  loss %.4f  AUC %.4f  %5.1f s  %.2f M pairs/s  %.1f M rows/s  %.2f GB/s\n", title, report.loss,
        auc, report.seconds, static_cast<double>(report.pairs) / report.seconds * 1e-6,
        static_cast<double>(report.rows) / report.seconds * 1e-6,
        static_cast<double>(report.bytes) / report.seconds * 1e-9);
    total.pairs += report.pairs;
    total.rows += report.rows;
    total.bytes += report.bytes;
    total.seconds += report.seconds;
  }
  say("total:    %.2f M pairs, %.1f M rows and %.2f GB moved in %.1f s: %.1f M rows/s, %.2f GB/s\n",
      static_cast<double>(total.pairs) * 1e-6, static_cast<double>(total.rows) * 1e-6,
      static_cast<double>(total.bytes) * 1e-9, total.seconds,
      static_cast<double>(total.rows) / total.seconds * 1e-6,
      static_cast<double>(total.bytes) / total.seconds * 1e-9);

  const word_vectors vectors = model.vectors();
  if (!say.speaks) return;
  say("nearest words, by cosine:\n");
  print_neighbors(text, chosen, vectors);
  if (!chosen.output.empty()) {
    save_word2vec(chosen.output, text, vectors);
    say("saved:    %s\n", chosen.output.c_str());
  }
}

/// `given` is the group of processes that this one is a rank of, null for none.
void run(const options& chosen, const ferry::communicator* group) {
  const voice say{group == nullptr || group->rank() <= 0};
  const corpus text = read_corpus(chosen);
  if (say.speaks && text.invalid_bytes != 0)
    std::fprintf(stderr, "skipgram: warning: %llu bytes of the text are no UTF-8 and were read as spaces\n",
                 static_cast<unsigned long long>(text.invalid_bytes));
  say("text:     %llu words, %zu of them in a vocabulary of %zu, %zu sentences\n",
      static_cast<unsigned long long>(text.tokens_read), text.tokens.size(), text.words.size(),
      text.sentences());

  if (group != nullptr) {
    train(execution(), chosen, text, group);
  } else if (chosen.ranks == 0) {
    train(execution(), chosen, text, nullptr);
  } else {
    const auto comm = group_of(chosen.ranks);
    comm.run([&](int, const execution& exec) { train(exec, chosen, text, &comm); });
  }
}

}  // namespace

#ifdef SKIPGRAM_MPI
/// MPI from here to the end of main.
struct mpi_scope {
  mpi_scope(int& argc, char**& argv) { MPI_Init(&argc, &argv); }
  mpi_scope(const mpi_scope&) = delete;
  mpi_scope& operator=(const mpi_scope&) = delete;
  ~mpi_scope() { MPI_Finalize(); }
};
#endif

int main(int argc, char** argv) {
#ifdef SKIPGRAM_MPI
  const mpi_scope mpi(argc, argv);
#endif
  // Kokkos has its own arguments, and would answer our --help as well.
  std::vector<char*> ours{argv[0]}, for_kokkos{argv[0]};
  for (int i = 1; i < argc; ++i)
    (std::string_view(argv[i]).starts_with("--kokkos-") ? for_kokkos : ours).push_back(argv[i]);
  try {
    int exit_code = 0;
    const auto chosen = parse_options(static_cast<int>(ours.size()), ours.data(), exit_code);
    if (!chosen) return exit_code;
    auto count = static_cast<int>(for_kokkos.size());
    for_kokkos.push_back(nullptr);
    Kokkos::ScopeGuard kokkos(count, for_kokkos.data());
#ifdef SKIPGRAM_MPI
    // Every process is a rank; a group of one is one, too.
    const auto world = ferry::mpi::communicator(MPI_COMM_WORLD);
    world.run([&] { run(*chosen, &world); });
#else
    run(*chosen, nullptr);
#endif
    return 0;
  } catch (const std::exception& problem) {
    std::fflush(stdout);
    std::fprintf(stderr, "skipgram: %s\n", problem.what());
    return 1;
  }
}
