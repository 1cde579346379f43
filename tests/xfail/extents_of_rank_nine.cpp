// SPDX-License-Identifier: Apache-2.0
// Eight extents are the most.
// expected-error: ferry::extents: a tensor has 1 to 8 extents
#include <ferry/ferry.hpp>

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
#ifdef FERRY_XFAIL_FIXED
  static_cast<void>(ferry::extents<1, 1, 1, 1, 1, 1, 1, 1>::rank);
#else
  static_cast<void>(ferry::extents<1, 1, 1, 1, 1, 1, 1, 1, 1>::rank);
#endif
}
