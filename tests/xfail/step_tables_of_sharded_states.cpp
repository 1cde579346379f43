// SPDX-License-Identifier: Apache-2.0
// A sharded table is stepped by itself.
// expected-error: their states must not be those of sharded tables
#include <ferry/bags.hpp>
#include <ferry/distributed.hpp>
#include <ferry/ferry.hpp>

#include <cstdint>
#include <utility>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4), second("second", 9, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 1, 8);
  [[maybe_unused]] std::vector<std::int64_t> indices{1, 2, 3}, offsets{0, 2, 3};
  const ferry::optim::adam rule;
#ifdef FERRY_XFAIL_FIXED
  std::vector<decltype(ferry::optim::make_state(rule, table))> states;
#else
  using sharded = ferry::sharded_table<float, ferry::mapped_space>;
  std::vector<decltype(ferry::optim::make_state(rule, std::declval<sharded&>()))> states;
#endif
  ferry::step_bags(exec, rule, ferry::for_each_table(table, second), states, indices, offsets, batch).wait();
}
