// SPDX-License-Identifier: Apache-2.0
// What repeated rows mean is asked of the verb that uses the plan.
// expected-error: this verb reads or copies every row it is asked for, so it takes no duplicates policy
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
  static_cast<void>(ferry::make_plan(exec, indices, 10, ferry::bounds::clamp{}));
#else
  static_cast<void>(ferry::make_plan(exec, indices, 10, ferry::duplicates::sum{}));
#endif
}
