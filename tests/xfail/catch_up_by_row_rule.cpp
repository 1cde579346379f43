// SPDX-License-Identifier: Apache-2.0
// There is nothing to catch up with.
// expected-error: this rule, or one of its transforms, can't be combined with step_count::catch_up
#include <ferry/ferry.hpp>

#include <cstdint>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 2, 4);
  const std::vector<std::int64_t> indices{1, 2};
  const ferry::optim::lamb rows;
  auto of_rows = ferry::optim::make_state(rows, table);
  const ferry::optim::adam rule;
  auto state = ferry::optim::make_state(rule, table);
#ifdef FERRY_XFAIL_FIXED
  ferry::catch_up(exec, rule, table, state).wait();
#else
  ferry::catch_up(exec, rows, table, of_rows).wait();
#endif
}
