// SPDX-License-Identifier: Apache-2.0
// Integers are not trained.
// expected-error: records hold weights and state of float, double, half_t or bhalf_t elements only
#include <ferry/ferry.hpp>

#include <cstdint>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 2, 4);
  const std::vector<std::int64_t> indices{1, 2};
  const ferry::optim::adam rule;
#ifdef FERRY_XFAIL_FIXED
  auto records = ferry::optim::make_records<float, ferry::mapped_space, float>(rule, "records", 10, 4);
#else
  auto records = ferry::optim::make_records<std::int32_t, ferry::mapped_space, float>(rule, "records", 10, 4);
#endif
}
