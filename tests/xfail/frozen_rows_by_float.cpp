// SPDX-License-Identifier: Apache-2.0
// A mask says yes or no.
// expected-error: the mask of frozen_rows must be of integers
#include <ferry/ferry.hpp>

#include <cstdint>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 2, 4);
  const std::vector<std::int64_t> indices{1, 2};
  ferry::tensor<std::uint8_t, ferry::mapped_space> mask("mask", 10);
  ferry::tensor<float, ferry::mapped_space> shares("shares", 10);
#ifdef FERRY_XFAIL_FIXED
  [[maybe_unused]] const ferry::optim::frozen_rows transform{mask};
#else
  [[maybe_unused]] const ferry::optim::frozen_rows transform{shares};
#endif
}
