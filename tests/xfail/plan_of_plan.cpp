// SPDX-License-Identifier: Apache-2.0
// A plan is sorted already.
// expected-error: make_plan takes indices, not another plan
#include <ferry/ferry.hpp>

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 2, 4);
  const std::vector<std::int64_t> indices{1, 2};
  const auto plan = ferry::make_plan(exec, indices, 10);
#ifdef FERRY_XFAIL_FIXED
  ferry::gather(exec, table, plan, batch).wait();
#else
  static_cast<void>(ferry::make_plan(exec, plan, 10));
#endif
}
