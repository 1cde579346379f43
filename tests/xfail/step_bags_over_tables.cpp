// SPDX-License-Identifier: Apache-2.0
// Each table has a state of its own.
// expected-error: step_bags over for_each_table takes a range of states
#include <ferry/bags.hpp>
#include <ferry/ferry.hpp>

#include <cstdint>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4), second("second", 9, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 1, 8);
  [[maybe_unused]] std::vector<std::int64_t> indices{1, 2, 3}, offsets{0, 2, 3};
  const ferry::optim::adam rule;
  std::vector<decltype(ferry::optim::make_state(rule, table))> states;
#ifdef FERRY_XFAIL_FIXED
  ferry::step_bags(exec, rule, ferry::for_each_table(table, second), states, indices, offsets, batch).wait();
#else
  ferry::step_bags(exec, rule, ferry::for_each_table(table, second), states.front(), indices, offsets, batch)
      .wait();
#endif
}
