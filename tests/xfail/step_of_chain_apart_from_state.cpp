// SPDX-License-Identifier: Apache-2.0
// The update runs where table and state lie, on one side.
// expected-error: path::staged steps where the table lies, so table and state must both be in host memory or
// both in device_space; use path::direct or make_state<Space>
#include <ferry/ferry.hpp>

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 2, 4);
  const std::vector<std::int64_t> indices{1, 2};
  const ferry::optim::adam rule;
  auto near = ferry::optim::make_state<ferry::pinned_space>(rule, table);
  auto far = ferry::optim::make_state<ferry::device_space>(rule, table);
  static_cast<void>(near);
  static_cast<void>(far);
#ifdef FERRY_XFAIL_FIXED
  ferry::step(exec, rule, table, near, indices, batch, ferry::path::staged{}).wait();
#else
  ferry::step(exec, rule, table, far, indices, batch, ferry::path::staged{}).wait();
#endif
}
