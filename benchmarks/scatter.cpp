// SPDX-License-Identifier: Apache-2.0
#include "support/scatter_case.hpp"

namespace ferry_bench {
namespace {

/// The promise that no row is named twice, with and without the look at the bounds, and the default, which
/// sorts.
template <class Table>
void time_all(session& run, const std::string& name, const facts& setting, const Table& table, std::int64_t n,
              int burst, const traffic& moved) {
  using unique = ferry::duplicates::assume_unique;
  const auto batch = salted_batch(run, n, table.width());
  const auto distinct = index_sets::make<distinct_row>(run, n, table.rows());
  const auto distinct_rows = winners(run, distinct[1]);
  time_scatter(run, name + ".unique_unchecked", setting, table, distinct, distinct_rows, batch, burst, moved,
               unique{}, ferry::bounds::unchecked{});
  time_scatter(run, name + ".unique", setting, table, distinct, distinct_rows, batch, burst, moved, unique{});
  const auto any = index_sets::make<any_row>(run, n, table.rows());
  time_scatter(run, name + ".last", setting, table, any, winners(run, any[1]), batch, burst, moved);
}

void scatter_mapped(session& run) {
  filled_table<ferry::mapped_space> table(run, run.host_table_bytes());
  for (const std::int64_t row_bytes : run.chosen().rows_bytes)
    time_all(run, "scatter.mapped." + bytes_text(row_bytes), table.setting(), table.rows_of(row_bytes),
             run.chosen().n, 1, back_over_the_link());
}

void scatter_step_batch(session& run) {
  const auto row_bytes = run.chosen().width * 4;
  filled_table<ferry::device_space> table(run, static_cast<std::size_t>(run.chosen().step_rows * row_bytes));
  time_all(run, "scatter.device.step_batch", table.setting(), table.rows_of(row_bytes), run.chosen().step_n,
           16, inside_the_device());
}

const registration mapped{"scatter.mapped", scatter_mapped};
const registration device{"scatter.device.step_batch", scatter_step_batch};

}  // namespace
}  // namespace ferry_bench
