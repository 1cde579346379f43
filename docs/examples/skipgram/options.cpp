// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include "policies.hpp"

#include <CLI/CLI.hpp>

namespace skipgram {

double options::learning_rate() const {
  if (lr) return *lr;
  // The gradients of a batch are summed over all pairs that share a word. Adagrad and Adam divide that sum's
  // size out again; plain SGD does not, so its rate has to suit the most frequent words.
  if (optimizer == "adam") return 0.002;
  if (optimizer == "sgd") return 0.02;
  return 0.2;
}

std::optional<options> parse_options(int argc, const char* const* argv, bool over_ranks, int& exit_code) {
  options chosen;
  CLI::App app{
      "Trains word embeddings (skip-gram with negative sampling) whose tables live in a memory space of your "
      "choice.\n"
      "Arguments that begin with --kokkos- go to Kokkos, --kokkos-num-threads=2 say."};
  app.name("skipgram");
  app.option_defaults()->always_capture_default();

  app.add_option("text", chosen.text, "UTF-8 text to learn from (default: the glosses of WordNet)")
      ->capture_default_str();
  app.add_option("--output", chosen.output, "Save the vectors there, in word2vec's text format");
  app.add_option("--neighbors", chosen.neighbors, "Words whose neighbours are shown at the end")
      ->delimiter(',');

  const std::string placement = "Where the tables live";
  app.add_option("--space", chosen.space, "Memory space of both tables")
      ->check(CLI::IsMember(names_of(spaces)))
      ->group(placement);
  app.add_option("--path", chosen.path, "How rows travel to the device and back")
      ->check(CLI::IsMember(names_of(paths)))
      ->group(placement);
  app.add_option("--dtype", chosen.dtype, "Element type of the tables")
      ->check(CLI::IsMember(names_of(dtypes)))
      ->group(placement);

  const std::string training = "Training";
  app.add_option("--optimizer", chosen.optimizer, "Optimizer of both tables")
      ->check(CLI::IsMember(names_of(optimizers)))
      ->group(training);
  app.add_option("--lr", chosen.lr, "Learning rate (default: 0.2 adagrad, 0.002 adam, 0.02 sgd)")
      ->check(CLI::PositiveNumber)
      ->group(training);
  app.add_option("--dim", chosen.dim, "Elements of a word vector")
      ->check(CLI::Range(1, 4096))
      ->group(training);
  app.add_option("--epochs", chosen.epochs, "Passes over the text")
      ->check(CLI::Range(1, 10000))
      ->group(training);
  app.add_option("--batch", chosen.batch, "Pairs of words in a step")
      ->check(CLI::Range(1, 1 << 22))
      ->group(training);
  app.add_option("--negatives", chosen.negatives, "Noise words for each pair")
      ->check(CLI::Range(1, 64))
      ->group(training);
  app.add_option("--workers", chosen.workers, "Threads that make batches ahead of the training")
      ->check(CLI::Range(1, 64))
      ->group(training);
  if (over_ranks)
    app.add_option(
           "--ranks", chosen.ranks,
           "Threads that train together, each with a part of both tables and of every batch; the numbers are the same for any number of them")
        ->check(CLI::Range(1, 64))
        ->group(training);
  app.add_option("--seed", chosen.seed, "Seed of everything random")->group(training);

  const std::string text = "Text";
  app.add_option("--window", chosen.window, "Largest distance of the words of a pair")
      ->check(CLI::Range(1, 100))
      ->group(text);
  app.add_option("--min-count", chosen.min_count, "Drop words that are rarer than this")
      ->check(CLI::PositiveNumber)
      ->group(text);
  app.add_option("--subsample", chosen.subsample,
                 "Thin out words more frequent than this share of the text; 0: none")
      ->check(CLI::Range(0.0, 1.0))
      ->group(text);
  app.add_option("--held-out", chosen.held_out,
                 "Share of the word pairs that are only ever ranked, never trained on")
      ->check(CLI::Range(0.001, 0.5))
      ->group(text);

  try {
    app.parse(argc, argv);
    require_supported(chosen.space, chosen.path);
  } catch (const CLI::ParseError& stop) {
    exit_code = app.exit(stop);
    return std::nullopt;
  }
  return chosen;
}

}  // namespace skipgram
