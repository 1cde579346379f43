// SPDX-License-Identifier: Apache-2.0
// Rows that a transform leaves out have nothing to catch up with.
// expected-error: step_count::catch_up can't make up for transforms that leave rows out or change weights
#include <ferry/ferry.hpp>

#include <cstdint>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 2, 4);
  const std::vector<std::int64_t> indices{1, 2};
  ferry::tensor<std::uint8_t, ferry::mapped_space> mask("mask", 10);
  const ferry::optim::chain rule{ferry::optim::adam{}, ferry::optim::frozen_rows{mask}};
  auto state = ferry::optim::make_state(rule, table);
#ifdef FERRY_XFAIL_FIXED
  ferry::step(exec, rule, table, state, indices, batch, ferry::step_count::per_row{}).wait();
#else
  ferry::step(exec, rule, table, state, indices, batch, ferry::step_count::catch_up{}).wait();
#endif
}
