// SPDX-License-Identifier: Apache-2.0
// A norm is that of a row's whole gradient.
// expected-error: duplicates::sum_any_order is for steps that are linear in the gradient
#include <ferry/ferry.hpp>

#include <cstdint>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::device_space> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 2, 4);
  const std::vector<std::int64_t> indices{1, 2};
  const ferry::optim::sgd rule;
  const ferry::optim::chain clipped{rule, ferry::optim::clip_norm{1.0}};
  auto state = ferry::optim::make_state(rule, table);
#ifdef FERRY_XFAIL_FIXED
  ferry::step(exec, rule, table, state, indices, batch, ferry::duplicates::sum_any_order{}).wait();
#else
  ferry::step(exec, clipped, table, state, indices, batch, ferry::duplicates::sum_any_order{}).wait();
#endif
}
