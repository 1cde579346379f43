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

const registration mine{"gather.mapped", gather_mapped};

}  // namespace
}  // namespace ferry_bench
