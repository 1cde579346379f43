// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include <CLI/CLI.hpp>

namespace ferry_bench {

options parse_options(int argc, char** argv, std::optional<int>& exit_status) {
  options chosen;
  std::string format = "json";
  CLI::App app("Measures ferry's verbs against ceilings that are measured in the same run.");
  app.add_flag("--list", chosen.list, "List the cases and end");
  app.add_option("--filter", chosen.filter, "Run the cases whose name this regular expression is found in");
  // The second spelling is Google Benchmark's: scripts drive our programs and others alike.
  app.add_option("--json,--benchmark_out", chosen.json, "Write the report to this file");
  app.add_option("--benchmark_out_format", format, "Format of the report")->check(CLI::IsMember({"json"}));
  app.add_option("--repeats", chosen.repeats, "Timed calls of each figure")->check(CLI::Range(1, 10000));
  app.add_option("--warm-up", chosen.warm_up, "Calls before them")->check(CLI::Range(1, 10000));
  app.add_option("--index-sets", chosen.index_sets, "Sets of random indices in rotation")
      ->check(CLI::Range(1, 1000));
  app.add_option("--table-gib", chosen.table_gib,
                 "Size of the tables in host memory (default 16, or what fits)")
      ->check(CLI::PositiveNumber);
  app.add_option("--device-table-gib", chosen.device_table_gib,
                 "Size of the large table in device memory (default 32, or what fits)")
      ->check(CLI::PositiveNumber);
  app.add_option("--rows-bytes", chosen.rows_bytes, "Bytes of a row, multiples of 16; several may be given")
      ->delimiter(',');
  app.add_option("--n", chosen.n, "Rows of a batch over the link")->check(CLI::PositiveNumber);
  app.add_option("--device-n", chosen.device_n, "Rows of a batch in the large device table")
      ->check(CLI::PositiveNumber);
  app.add_option("--step-n", chosen.step_n, "Rows of a batch of a step, and of the verbs of a rank")
      ->check(CLI::PositiveNumber);
  app.add_option("--devices", chosen.devices,
                 "Numbers of devices (default 1, 2, 4 and so on, and all); several may be given")
      ->delimiter(',')
      ->check(CLI::Range(1, 64));
  app.add_flag("--quick", chosen.quick, "Tiny sizes: shows that everything runs and is right, not how fast");
  try {
    app.parse(argc, argv);
    for (const std::int64_t bytes : chosen.rows_bytes)
      if (bytes <= 0 || bytes % 16 != 0)
        throw CLI::ValidationError("--rows-bytes", "must be multiples of 16");
  } catch (const CLI::ParseError& end) {
    exit_status = app.exit(end);
    return chosen;
  }
  if (chosen.quick) {
    chosen.repeats = 2;
    chosen.warm_up = 1;
    chosen.index_sets = 4;
    chosen.n = 4096;
    chosen.device_n = 8192;
    chosen.step_rows = 20011;  // not a power of two: the distinct rows then have to be walked to
    chosen.step_n = 4096;
    if (!chosen.table_gib) chosen.table_gib = 1.0 / 32;
    if (!chosen.device_table_gib) chosen.device_table_gib = 1.0 / 32;
    chosen.ceiling_gib = 1.0 / 64;
  }
  return chosen;
}

}  // namespace ferry_bench
