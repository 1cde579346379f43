#include "support/gather_case.hpp"

namespace ferry_bench {
namespace {

/// Rows that host threads collect and DMA carries.
template <class Space>
void time_staged(session& run, filled_table<Space>& table, const std::string& space) {
  for (const std::int64_t row_bytes : run.chosen().rows_bytes) {
    const auto view = table.rows_of(row_bytes);
    const auto sets = index_sets::make<any_row>(run, run.chosen().n, view.rows());
    batch_tensor batch("batch", run.chosen().n, row_bytes / 4);
    time_gather(run, "gather." + space + ".staged." + bytes_text(row_bytes), table.setting(), view, sets,
                batch, 1, over_the_link(), ferry::path::staged{});
  }
}

/// Page-locked memory can be read directly as well; behind small device pages that is slow for large tables.
void gather_pinned(session& run) {
  filled_table<ferry::pinned_space> table(run, run.host_table_bytes());
  time_staged(run, table, "pinned");
  for (const std::int64_t row_bytes : run.chosen().rows_bytes) {
    const auto view = table.rows_of(row_bytes);
    const auto sets = index_sets::make<any_row>(run, run.chosen().n, view.rows());
    batch_tensor batch("batch", run.chosen().n, row_bytes / 4);
    time_gather(run, "gather.pinned.direct." + bytes_text(row_bytes), table.setting(), view, sets, batch, 1,
                over_the_link(), ferry::path::direct{});
  }
}

void gather_pageable(session& run) {
  filled_table<ferry::pageable_space> table(run, run.host_table_bytes());
  time_staged(run, table, "pageable");
}

const registration pinned{"gather.pinned", gather_pinned};
const registration pageable{"gather.pageable", gather_pageable};

}  // namespace
}  // namespace ferry_bench
