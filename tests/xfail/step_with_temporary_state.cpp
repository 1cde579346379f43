// SPDX-License-Identifier: Apache-2.0
// The state of a step is for the next one, too.
// expected-errors: 1 writes to a temporary table, state or records
// most-lines: 25
#include <ferry/ferry.hpp>

#include <cstdint>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 2, 4);
  [[maybe_unused]] const std::vector<std::int64_t> indices{1, 2}, offsets{0, 1};
  const ferry::optim::adam rule;
#ifdef FERRY_XFAIL_FIXED
  auto state = ferry::optim::make_state(rule, table);
  ferry::step(exec, rule, table, state, indices, batch).wait();
#else
  ferry::step(exec, rule, table, ferry::optim::make_state(rule, table), indices, batch).wait();
#endif
}
