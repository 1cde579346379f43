// SPDX-License-Identifier: Apache-2.0
// Weights of float are not rounded.
// expected-error: rounding::stochastic is for tables of half_t, bhalf_t or quantized rows
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
  ferry::step(exec, rule, table, state, indices, batch, ferry::rounding::nearest{}).wait();
#else
  ferry::step(exec, rule, table, state, indices, batch, ferry::rounding::stochastic{}).wait();
#endif
}
