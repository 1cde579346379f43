// SPDX-License-Identifier: Apache-2.0
// Rows in the order of the table are not in the order of a bag.
// expected-error: gather_bags adds rows in the order of their positions
#include <ferry/bags.hpp>
#include <ferry/ferry.hpp>

#include <cstdint>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> pooled("pooled", 2, 4);
  const std::vector<std::int64_t> indices{1, 2, 3}, offsets{0, 2, 3};
#ifdef FERRY_XFAIL_FIXED
  ferry::gather_bags(exec, table, indices, offsets, pooled, ferry::path::direct{}).wait();
#else
  ferry::gather_bags(exec, table, indices, offsets, pooled, ferry::path::ordered{}).wait();
#endif
}
