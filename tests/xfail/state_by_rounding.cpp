// SPDX-License-Identifier: Apache-2.0
// A state knows of counts alone.
// expected-error: the last argument of make_state is a step_count policy: global, per_row or catch_up
#include <ferry/ferry.hpp>

#include <cstdint>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 2, 4);
  const std::vector<std::int64_t> indices{1, 2};
  const ferry::optim::adam rule;
#ifdef FERRY_XFAIL_FIXED
  auto state = ferry::optim::make_state(rule, table, ferry::step_count::per_row{});
#else
  auto state = ferry::optim::make_state(rule, table, ferry::rounding::nearest{});
#endif
}
