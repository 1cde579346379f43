// SPDX-License-Identifier: Apache-2.0
// The state goes with the table.
// expected-errors: 2 step is called as step\(exec, rule, table, state, indices, grads, policies...\)
// most-lines: 110
#include <ferry/ferry.hpp>

#include <cstdint>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 2, 4);
  [[maybe_unused]] const std::vector<std::int64_t> indices{1, 2}, offsets{0, 1};
  const ferry::optim::adam rule;
  auto state = ferry::optim::make_state(rule, table);
#ifdef FERRY_XFAIL_FIXED
  ferry::step(exec, rule, table, state, indices, batch).wait();
#else
  ferry::step(exec, rule, table, indices, batch).wait();
  ferry::step(exec, rule, state, table, indices, batch).wait();
#endif
}
