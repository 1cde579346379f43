// SPDX-License-Identifier: Apache-2.0
// A row named twice takes one step.
// expected-error: duplicates::sum_any_order looks at positions, not at rows
#include <ferry/ferry.hpp>

#include <cstdint>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::device_space> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 2, 4);
  const std::vector<std::int64_t> indices{1, 2};
  const ferry::optim::sgd rule;
  auto state = ferry::optim::make_state(rule, table);
#ifdef FERRY_XFAIL_FIXED
  ferry::step(exec, rule, table, state, indices, batch, ferry::duplicates::sum_any_order{}).wait();
#else
  ferry::step(exec, rule, table, state, indices, batch, ferry::duplicates::sum_any_order{},
              ferry::step_count::per_row{})
      .wait();
#endif
}
