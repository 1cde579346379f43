// SPDX-License-Identifier: Apache-2.0
// The spaces of Kokkos do not say how memory is obtained.
// expected-first-error: the second template argument of a tensor is one of ferry's memory spaces
// most-lines: 20
#include <ferry/ferry.hpp>

void refused() {
#ifdef FERRY_XFAIL_FIXED
  const ferry::tensor<float, ferry::pageable_space> table("table", 10, 2);
#else
  const ferry::tensor<float, Kokkos::HostSpace> table("table", 10, 2);
#endif
}
