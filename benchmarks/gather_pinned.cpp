// SPDX-License-Identifier: Apache-2.0
#include "support/gather_case.hpp"

namespace ferry_bench {
namespace {

/// Every path from host memory that must stay page-locked, for the batch of an embedding table's training step and
/// for a large one, each with the indices sorted inside and with a plan that is ready.
template <class Space, class... Paths>
void time_paths(session& run, filled_table<Space>& table, const std::string& space, Paths... paths) {
  for (const std::int64_t row_bytes : run.chosen().rows_bytes)
    for (const std::int64_t n : {run.chosen().step_n, 8 * run.chosen().step_n}) {
      const auto view = table.rows_of(row_bytes);
      const auto sets = index_sets::make<any_row>(run, n, view.rows());
      const plan_sets plans(run, sets, view.rows());
      batch_tensor batch("batch", n, row_bytes / 4);
      const auto time = [&](auto path) {
        const std::string name = "gather." + space + "." + std::string(path.name) + "." +
                                 bytes_text(row_bytes) + ".n" + std::to_string(n);
        time_gather(run, name, table.setting(), view, sets, batch, 1, over_the_link(), path);
        time_gather_by(run, name + ".planned", table.setting(), view, plans, sets, batch, 1, over_the_link(),
                       path);
      };
      (time(paths), ...);
    }
}

void gather_pinned(session& run) {
  filled_table<ferry::pinned_space> table(run, run.host_table_bytes());
  time_paths(run, table, "pinned", ferry::path::direct{}, ferry::path::ordered{}, ferry::path::staged{},
             ferry::path::cooperative{});
}

void gather_pageable(session& run) {
  filled_table<ferry::pageable_space> table(run, run.host_table_bytes());
  time_paths(run, table, "pageable", ferry::path::staged{});
}

const registration pinned{"gather.pinned", gather_pinned};
const registration pageable{"gather.pageable", gather_pageable};

}  // namespace
}  // namespace ferry_bench
