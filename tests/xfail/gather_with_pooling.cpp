// SPDX-License-Identifier: Apache-2.0
// A gather pools nothing.
// expected-error: the trailing arguments must be policies
#include <ferry/ferry.hpp>

#include <cstdint>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> pooled("pooled", 2, 4);
  const std::vector<std::int64_t> indices{1, 2, 3}, offsets{0, 2, 3};
  ferry::tensor<float, ferry::device_space> batch("batch", 3, 4);
#ifdef FERRY_XFAIL_FIXED
  ferry::gather(exec, table, offsets, batch).wait();
#else
  ferry::gather(exec, table, offsets, batch, ferry::pooling::sum{}).wait();
#endif
}
