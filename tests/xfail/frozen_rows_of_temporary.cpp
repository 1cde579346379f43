// SPDX-License-Identifier: Apache-2.0
// The steps would read a mask that was freed.
// expected-error: a reference to the array is kept, so it can't be a temporary tensor, vector or array
#include <ferry/ferry.hpp>

#include <cstdint>
#include <span>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
#ifdef FERRY_XFAIL_FIXED
  std::vector<std::uint8_t> mask(10);
  static_cast<void>(ferry::optim::frozen_rows(std::span(mask)));
#else
  static_cast<void>(ferry::optim::frozen_rows(std::vector<std::uint8_t>(10)));
#endif
}
