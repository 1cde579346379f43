// SPDX-License-Identifier: Apache-2.0
// Weights multiply.
// expected-error: the weights of positions must be numbers
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
  const std::vector<float> weights{1, 2, 3};
  const std::vector<pair> pairs(3);
#ifdef FERRY_XFAIL_FIXED
  ferry::gather_bags(exec, table, indices, offsets, pooled, weights, ferry::pooling::sum{}).wait();
#else
  ferry::gather_bags(exec, table, indices, offsets, pooled, pairs, ferry::pooling::sum{}).wait();
#endif
}
