// SPDX-License-Identifier: Apache-2.0
// Half a row is none.
// expected-errors: 1 the extents of a tensor are integers
// most-lines: 25
#include <ferry/ferry.hpp>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
#ifdef FERRY_XFAIL_FIXED
  const ferry::tensor<float, ferry::mapped_space> table("table", 1000, 8);
#else
  const ferry::tensor<float, ferry::mapped_space> table("table", 1e3, 8);
#endif
}
