// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace skipgram {

/// The options of the command line. The names of policies stay strings here; embedding.hpp turns them into types.
struct options {
  std::string text;  ///< empty: the glosses of WordNet
  std::string output;
  std::vector<std::string> neighbors;

  std::string space = "mapped";
  std::string path = "automatic";
  std::string optimizer = "adagrad";
  std::string dtype = "float";

  std::size_t dim = 64;
  std::size_t epochs = 5;
  std::size_t batch = 16384;
  std::size_t negatives = 5;
  std::size_t window = 5;
  std::uint64_t min_count = 5;
  double subsample = 5e-5;
  double held_out = 0.03;
  std::optional<double> lr;  ///< none: the optimizer's own default, see learning_rate()
  std::uint64_t seed = 1;
  int workers = 1;  ///< threads that make batches
  int ranks = 2;    ///< threads that train together, in ../sharded

  [[nodiscard]] double learning_rate() const;
};

/// Nothing where the program has already said all it was asked for (--help, a wrong argument); `exit_code`
/// then holds its status. Programs over ranks have the option --ranks.
std::optional<options> parse_options(int argc, const char* const* argv, bool over_ranks, int& exit_code);

}  // namespace skipgram
