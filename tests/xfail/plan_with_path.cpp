// SPDX-License-Identifier: Apache-2.0
// A plan moves no rows.
// expected-error: make_plan moves no rows, so it takes no path policy
#include <ferry/ferry.hpp>

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 2, 4);
  const std::vector<std::int64_t> indices{1, 2};
#ifdef FERRY_XFAIL_FIXED
  static_cast<void>(ferry::make_plan(exec, indices, 10, ferry::bounds::skip{}));
#else
  static_cast<void>(ferry::make_plan(exec, indices, 10, ferry::path::direct{}));
#endif
}
