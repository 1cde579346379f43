// SPDX-License-Identifier: Apache-2.0
// The indices come second.
// expected-errors: 1 the first argument of a verb must be an instance of a Kokkos execution space
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
  static_cast<void>(ferry::make_plan(exec, indices, 10));
#else
  static_cast<void>(ferry::make_plan(indices, indices, 10));
#endif
}
