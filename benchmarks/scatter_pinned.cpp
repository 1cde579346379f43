// SPDX-License-Identifier: Apache-2.0
#include "support/scatter_case.hpp"

namespace ferry_bench {
namespace {

/// Every path into host memory that must stay page-locked (writes take no path::ordered), for the batch of an embedding
/// table's training step and for a large one, each by indices and with a plan that is ready. No row is named twice.
void scatter_pinned(session& run) {
  filled_table<ferry::pinned_space> table(run, run.host_table_bytes());
  for (const std::int64_t row_bytes : run.chosen().rows_bytes)
    for (const std::int64_t n : {run.chosen().step_n, 8 * run.chosen().step_n}) {
      const auto view = table.rows_of(row_bytes);
      if (n > static_cast<std::int64_t>(view.rows())) {
        run.results().skipped("scatter.pinned." + bytes_text(row_bytes) + ".n" + std::to_string(n),
                              "the table has fewer rows");
        continue;
      }
      const auto sets = index_sets::make<distinct_row>(run, n, view.rows());
      const auto winner = winners(run, sets[1]);
      const plan_sets plans(run, sets, view.rows());
      const auto batch = salted_batch(run, n, view.width());
      const auto time = [&](auto path) {
        const ferry::duplicates::assume_unique unique;
        const std::string name = "scatter.pinned." + std::string(path.name) + "." + bytes_text(row_bytes) +
                                 ".n" + std::to_string(n);
        time_scatter(run, name, table.setting(), view, sets, winner, batch, 1, back_over_the_link(), path,
                     unique);
        time_scatter_by(run, name + ".planned", table.setting(), view, plans, sets, winner, batch, 1,
                        back_over_the_link(), path, unique);
      };
      time(ferry::path::direct{});
      time(ferry::path::staged{});
      time(ferry::path::cooperative{});
    }
}

const registration mine{"scatter.pinned", scatter_pinned};

}  // namespace
}  // namespace ferry_bench
