// SPDX-License-Identifier: Apache-2.0
#include "support/measure.hpp"
#include "support/tables.hpp"

#include <algorithm>

namespace ferry_bench {
namespace {

/// Sorting the indices of a batch, which every verb of that batch then shares.
void make_plan(session& run) {
  const auto rows = static_cast<std::size_t>(run.chosen().step_rows);
  for (const std::int64_t n : {run.chosen().step_n, 8 * run.chosen().step_n}) {
    const auto sets = index_sets::make<any_row>(run, n, rows);
    figure result;
    result.name = n == run.chosen().step_n ? "make_plan.step_batch" : "make_plan.step_batch_x8";
    result.setting = {{"rows", run.chosen().step_rows}, {"n", n}};
    // A plan has no ticket: the fence that ends a work without one is what waits here.
    result.time =
        measure(run, 1, [&](int call) { static_cast<void>(ferry::make_plan(run.exec(), sets[call], rows)); });
    auto listed = to_host(sets[1]);
    std::sort(listed.begin(), listed.end());
    const auto distinct = std::unique(listed.begin(), listed.end()) - listed.begin();
    const auto counted = ferry::make_plan(run.exec(), sets[1], rows).unique_count();
    conclude(run, result, counted > distinct ? counted - distinct : distinct - counted);
  }
}

const registration mine{"make_plan", make_plan};

}  // namespace
}  // namespace ferry_bench
