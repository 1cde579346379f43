// SPDX-License-Identifier: Apache-2.0
#include "program.hpp"

#include "trainer.hpp"
#include "vectors.hpp"

#include <Kokkos_Core.hpp>

#include <cstdarg>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace skipgram {

namespace {

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

}  // namespace

void train(const execution& exec, const options& chosen, const corpus& text, const rank_group* ranks) {
  const voice say{ranks == nullptr || ranks->rank() == 0};
  trainer model(exec, text, chosen, ranks);
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

int run_program(int argc, char** argv, bool over_ranks, bool speaks,
                const std::function<void(const options&, const corpus&)>& work) {
  // Kokkos has its own arguments, and would answer our --help as well.
  std::vector<char*> ours{argv[0]}, for_kokkos{argv[0]};
  for (int i = 1; i < argc; ++i)
    (std::string_view(argv[i]).starts_with("--kokkos-") ? for_kokkos : ours).push_back(argv[i]);
  try {
    int exit_code = 0;
    const auto chosen = parse_options(static_cast<int>(ours.size()), ours.data(), over_ranks, exit_code);
    if (!chosen) return exit_code;
    auto count = static_cast<int>(for_kokkos.size());
    for_kokkos.push_back(nullptr);
    Kokkos::ScopeGuard kokkos(count, for_kokkos.data());
    const voice say{speaks};
    const corpus text = read_corpus(*chosen);
    if (speaks && text.invalid_bytes != 0)
      std::fprintf(stderr, "skipgram: warning: %llu bytes of the text are no UTF-8 and were read as spaces\n",
                   static_cast<unsigned long long>(text.invalid_bytes));
    say("text:     %llu words, %zu of them in a vocabulary of %zu, %zu sentences\n",
        static_cast<unsigned long long>(text.tokens_read), text.tokens.size(), text.words.size(),
        text.sentences());
    work(*chosen, text);
    return 0;
  } catch (const std::exception& problem) {
    std::fflush(stdout);
    std::fprintf(stderr, "skipgram: %s\n", problem.what());
    return 1;
  }
}

}  // namespace skipgram
