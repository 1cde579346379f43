// SPDX-License-Identifier: Apache-2.0
// Nothing says what a random struct is.
// expected-error: this initialisation needs elements that are numbers
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
  ferry::init::zeros(exec, pairs);
#else
  ferry::init::uniform(exec, pairs, 0.0, 1.0, 1);
#endif
}
