// SPDX-License-Identifier: Apache-2.0
#include "support/step_case.hpp"

#include <algorithm>

namespace ferry_bench::step_mapped_cases {
namespace {

/// Weights and moments in host memory, all tables' bytes of them, and gradients in the device: every row comes over the
/// link and goes back.
void step_mapped(session& run) {
  const ferry::optim::adam rule{.lr = 0.1, .eps = 0.25};
  const first_normed_step first{rule.lr, rule.eps};
  const auto n = run.chosen().step_n;
  const auto room = static_cast<std::int64_t>(run.host_table_bytes()) / (3 * 4 * run.chosen().width);
  const auto rows = std::max(n, room);
  step_case<ferry::mapped_space, ferry::optim::adam, first_normed_step> steps(
      run, "step.adam.mapped", rule, first, rows, n, both_ways_over_the_link());
  const auto sets = index_sets::make<distinct_row>(run, n, static_cast<std::size_t>(rows));
  const plan_sets plans(run, sets, static_cast<std::size_t>(rows));
  steps.time("direct", sets, plans, ferry::path::direct{});
  steps.time("ordered", sets, plans, ferry::path::ordered{});
}

const registration mine{"step.adam.mapped", step_mapped};

}  // namespace
}  // namespace ferry_bench::step_mapped_cases
