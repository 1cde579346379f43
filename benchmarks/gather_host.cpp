// SPDX-License-Identifier: Apache-2.0
#include "support/gather_case.hpp"

namespace ferry_bench {
namespace {

/// Random rows straight from host memory, for each size of row, and once more with the smaller batch of an
/// embedding table's training step.
void gather_mapped(session& run) {
  filled_table<ferry::mapped_space> table(run, run.host_table_bytes());
  for (const std::int64_t row_bytes : run.chosen().rows_bytes) {
    const auto view = table.rows_of(row_bytes);
    const auto time_batch = [&](const std::string& name, std::int64_t n, auto... policies) {
      const auto sets = index_sets::make<any_row>(run, n, view.rows());
      batch_tensor batch("batch", n, row_bytes / 4);
      time_gather(run, name, table.setting(), view, sets, batch, 1, over_the_link(), policies...);
    };
    const std::string name = "gather.mapped." + bytes_text(row_bytes);
    time_batch(name, run.chosen().n);
    time_batch(name + ".unchecked", run.chosen().n, ferry::bounds::unchecked{});
    time_batch(name + ".step_batch", run.chosen().step_n);
  }
}

/// Every path from host memory that must stay page-locked, for the batch of an embedding table's training step and
/// for a large one, each with the indices sorted inside and with a plan that is ready.
void gather_pinned(session& run) {
  filled_table<ferry::pinned_space> table(run, run.host_table_bytes());
  for (const std::int64_t row_bytes : run.chosen().rows_bytes)
    for (const std::int64_t n : {run.chosen().step_n, 8 * run.chosen().step_n}) {
      const auto view = table.rows_of(row_bytes);
      const auto sets = index_sets::make<any_row>(run, n, view.rows());
      const plan_sets plans(run, sets, view.rows());
      batch_tensor batch("batch", n, row_bytes / 4);
      const auto time = [&](auto path) {
        const std::string name = "gather.pinned." + std::string(path.name) + "." + bytes_text(row_bytes) +
                                 ".n" + std::to_string(n);
        time_gather(run, name, table.setting(), view, sets, batch, 1, over_the_link(), path);
        time_gather_by(run, name + ".planned", table.setting(), view, plans, sets, batch, 1, over_the_link(),
                       path);
      };
      time(ferry::path::direct{});
      time(ferry::path::ordered{});
      time(ferry::path::staged{});
      time(ferry::path::cooperative{});
    }
}

const registration mapped{"gather.mapped", gather_mapped};
const registration pinned{"gather.pinned", gather_pinned};

}  // namespace
}  // namespace ferry_bench
