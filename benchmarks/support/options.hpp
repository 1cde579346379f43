// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ferry_bench {

/// Cases, sizes and repeats of a run.
struct options {
  bool list = false;
  bool quick = false;
  std::string filter;  ///< regular expression, searched for in the names of the cases
  std::string json;    ///< file for the report, none where empty

  int repeats = 15;
  int warm_up = 3;
  int index_sets = 16;  ///< fresh random indices for each call, in rotation

  /// Sizes that were given are taken as they are; the defaults shrink where memory is short.
  std::optional<double> table_gib;         ///< of tables in host memory, default 16
  std::optional<double> device_table_gib;  ///< of the large table in device memory, default 32
  std::vector<std::int64_t> rows_bytes = {512, 128};
  std::int64_t n = 262144;          ///< rows of a batch over the link
  std::int64_t device_n = 4000000;  ///< rows of a batch in the large device table

  /// The table of the small device cases and of the optimizer steps.
  std::int64_t step_rows = 1000000;
  std::int64_t step_n = 131072;
  std::int64_t width = 128;

  double ceiling_gib = 1.0;

  std::vector<std::int64_t> devices;  ///< numbers of devices, one after the other; empty: 1, 2, 4 ... and all
};

/// Reads the command line. Where that asks for the help text, or is wrong, the program has to end: the exit
/// status is then in `exit_status`.
options parse_options(int argc, char** argv, std::optional<int>& exit_status);

}  // namespace ferry_bench
