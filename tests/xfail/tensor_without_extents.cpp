// SPDX-License-Identifier: Apache-2.0
// A tensor of dynamic extents needs them.
// expected-error: a tensor needs its extents after the label
#include <ferry/ferry.hpp>

#include <string>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
#ifdef FERRY_XFAIL_FIXED
  const ferry::tensor<float, ferry::pageable_space> table("table", 10, 4);
  const ferry::tensor<float, ferry::pageable_space, ferry::extents<10, 4>> fixed("fixed");
#else
  const ferry::tensor<float, ferry::pageable_space> table("table");
#endif
}
