// SPDX-License-Identifier: Apache-2.0
// Structs have no sum.
// expected-error: scatter_add adds, so the elements of table and values must be numbers
#include <ferry/ferry.hpp>

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

struct pair {
  float a, b;
};

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 2, 4);
  const std::vector<std::int64_t> indices{1, 2};
  ferry::tensor<pair, ferry::device_space> pairs("pairs", 2, 4);
#ifdef FERRY_XFAIL_FIXED
  ferry::scatter(exec, pairs, indices, pairs).wait();
#else
  ferry::scatter_add(exec, pairs, indices, pairs).wait();
#endif
}
