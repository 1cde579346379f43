// SPDX-License-Identifier: Apache-2.0
// The step counts in the states.
// expected-error: step_bags writes to the states of the tables of for_each_table, so none of them may be const
#include <ferry/bags.hpp>
#include <ferry/ferry.hpp>

#include <cstdint>
#include <span>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4), second("second", 9, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 1, 8);
  [[maybe_unused]] std::vector<std::int64_t> indices{1, 2, 3}, offsets{0, 2, 3};
  const ferry::optim::adam rule;
  using state = decltype(ferry::optim::make_state(rule, table));
  std::vector<state> states;
#ifdef FERRY_XFAIL_FIXED
  std::span<state> range(states);
#else
  std::span<const state> range(states);
#endif
  ferry::step_bags(exec, rule, ferry::for_each_table(table, second), range, indices, offsets, batch).wait();
}
