// SPDX-License-Identifier: Apache-2.0
// Structs can't be added.
// expected-error: bags of rows are pooled by arithmetic
#include <ferry/bags.hpp>
#include <ferry/ferry.hpp>

#include <cstdint>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> pooled("pooled", 2, 4);
  const std::vector<std::int64_t> indices{1, 2, 3}, offsets{0, 2, 3};
  struct pair {
    float first, second;
  };
  const ferry::tensor<pair, ferry::device_space> pairs("pairs", 10, 4);
#ifdef FERRY_XFAIL_FIXED
  ferry::gather_bags(exec, table, indices, offsets, pooled).wait();
#else
  ferry::gather_bags(exec, pairs, indices, offsets, pooled).wait();
#endif
}
