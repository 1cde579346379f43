// SPDX-License-Identifier: Apache-2.0
// One kernel reads all tables.
// expected-error: for_each_table takes tables of one element type
#include <ferry/bags.hpp>
#include <ferry/ferry.hpp>

#include <cstdint>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  const std::vector<std::int64_t> indices{1, 2, 3}, offsets{0, 2, 3};
  const ferry::tensor<float, ferry::mapped_space> second("other", 9, 4);
  ferry::tensor<float, ferry::device_space> pooled("pooled", 1, 8);
  const ferry::tensor<double, ferry::mapped_space> wide("wide", 9, 4);
#ifdef FERRY_XFAIL_FIXED
  ferry::gather_bags(exec, ferry::for_each_table(table, second), indices, offsets, pooled).wait();
#else
  ferry::gather_bags(exec, ferry::for_each_table(table, wide), indices, offsets, pooled).wait();
#endif
}
