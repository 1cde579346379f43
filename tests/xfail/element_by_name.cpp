// SPDX-License-Identifier: Apache-2.0
// Only integers say where an element is.
// expected-error: an element is named by integers, one for each extent
#include <ferry/ferry.hpp>

#include <cstdint>
#include <utility>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 4, 4);
#ifdef FERRY_XFAIL_FIXED
  table(1, 2) = 3.0F;
#else
  table("row", 2) = 3.0F;
#endif
}
