// SPDX-License-Identifier: Apache-2.0
// The gradient's norm is clipped once.
// expected-error: at most one transform may clip the norm of the gradient
#include <ferry/ferry.hpp>

#include <cstdint>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 2, 4);
  const std::vector<std::int64_t> indices{1, 2};
  const ferry::optim::adam rule;
  auto state = ferry::optim::make_state(rule, table);
#ifdef FERRY_XFAIL_FIXED
  const ferry::optim::chain optimizer{rule, ferry::optim::clip_norm{1.0}};
  ferry::step(exec, optimizer, table, state, indices, batch).wait();
#else
  const ferry::optim::chain optimizer{rule, ferry::optim::clip_norm{1.0}, ferry::optim::clip_norm{2.0}};
  ferry::step(exec, optimizer, table, state, indices, batch).wait();
#endif
}
