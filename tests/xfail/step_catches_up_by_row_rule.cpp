// SPDX-License-Identifier: Apache-2.0
// A rule of rows can't make up for steps element by element.
// expected-error: step_count::catch_up is for rules that update each element by itself
#include <ferry/ferry.hpp>

#include <cstdint>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 2, 4);
  const std::vector<std::int64_t> indices{1, 2};
  const ferry::optim::lamb rule;
  auto state = ferry::optim::make_state(rule, table);
#ifdef FERRY_XFAIL_FIXED
  ferry::step(exec, rule, table, state, indices, batch, ferry::step_count::per_row{}).wait();
#else
  ferry::step(exec, rule, table, state, indices, batch, ferry::step_count::catch_up{}).wait();
#endif
}
