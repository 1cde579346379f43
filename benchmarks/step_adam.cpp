// SPDX-License-Identifier: Apache-2.0
#include "support/step_case.hpp"

#include <algorithm>

namespace ferry_bench::step_adam_cases {
namespace {

constexpr ferry::optim::adam rule{.lr = 0.1, .eps = 0.25};
constexpr first_normed_step first{rule.lr, rule.eps};

void step_adam(session& run) { time_steps(run, "step.adam", rule, first); }

void step_amsgrad(session& run) {
  auto largest = rule;
  largest.amsgrad = true;
  time_rule(run, "step.amsgrad", largest, first);
}

/// A million rows in one call, so that the launch of the kernel does not count; of a table four times as large, or of
/// what the device has room for.
void step_large(session& run) {
  const auto n = std::min(std::int64_t{1} << 20, run.chosen().device_n);
  const auto room = static_cast<std::int64_t>(run.device_table_bytes()) / (3 * 4 * run.chosen().width);
  time_rule(run, "step.adam.large", rule, first, std::max(n, std::min(4 * n, room)), n);
}

/// Weights and moments in host memory, all tables' bytes of them, and gradients in the device: every row comes over the
/// link and goes back.
void step_mapped(session& run) {
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

const registration adam{"step.adam", step_adam};
const registration amsgrad{"step.amsgrad", step_amsgrad};
const registration large{"step.adam.large", step_large};
const registration mapped{"step.adam.mapped", step_mapped};

}  // namespace
}  // namespace ferry_bench::step_adam_cases
