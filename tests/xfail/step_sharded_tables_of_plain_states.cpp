// SPDX-License-Identifier: Apache-2.0
// Each shard has a state of its own.
// expected-error: so their states must be those of sharded tables
#include <ferry/bags.hpp>
#include <ferry/distributed.hpp>
#include <ferry/ferry.hpp>

#include <cstdint>
#include <vector>

void refused(const Kokkos::DefaultExecutionSpace& exec) {
  const auto comm = ferry::communicator::threads(2);
  ferry::sharded_table<float, ferry::mapped_space> table("table", comm, 10, 4), second("second", comm, 9, 4);
  [[maybe_unused]] const ferry::tensor<float, ferry::mapped_space> plain("plain", 10, 4);
  const ferry::tensor<float, ferry::mapped_space> batch("batch", 1, 8);
  const std::vector<std::int64_t> indices{1, 2, 3}, offsets{0, 2, 3};
  const ferry::optim::adam rule;
#ifdef FERRY_XFAIL_FIXED
  std::vector<decltype(ferry::optim::make_state(rule, table))> states;
#else
  std::vector<decltype(ferry::optim::make_state(rule, plain))> states;
#endif
  ferry::step_bags(exec, rule, ferry::for_each_table(table, second), states, indices, offsets, batch).wait();
}
