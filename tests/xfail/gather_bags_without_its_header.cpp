// SPDX-License-Identifier: Apache-2.0
// expected-first-error: gather_bags is declared in <ferry/bags.hpp>; include that header
#include <ferry/ferry.hpp>
#ifdef FERRY_XFAIL_FIXED
#include <ferry/bags.hpp>
#endif

#include <cstdint>
#include <vector>

void refused(const Kokkos::DefaultExecutionSpace& exec) {
  const ferry::tensor<float, ferry::device_space> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> pooled("pooled", 2, 4);
  const std::vector<std::int64_t> indices{1, 2, 3}, offsets{0, 1};
  ferry::gather_bags(exec, table, indices, offsets, pooled, ferry::pooling::sum{}).wait();
}
