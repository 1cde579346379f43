// SPDX-License-Identifier: Apache-2.0
// A number is no optimizer.
// expected-error: make_state needs an optimizer rule, ferry::optim::adam say
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
  static_cast<void>(ferry::optim::make_state<ferry::mapped_space, float>(ferry::optim::adam{}, table));
#else
  static_cast<void>(ferry::optim::make_state<ferry::mapped_space, float>(1, table));
#endif
}
