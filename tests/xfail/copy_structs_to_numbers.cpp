// SPDX-License-Identifier: Apache-2.0
// A struct is copied as it is.
// expected-error: the element types of table and batch differ and at least one of them is no number, so rows
// can't be converted
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
  ferry::copy(exec, pairs, pairs).wait();
#else
  ferry::copy(exec, pairs, batch).wait();
#endif
}
