// SPDX-License-Identifier: Apache-2.0
// A number does not say what comes earlier.
// expected-error: what comes earlier must be instances of Kokkos execution spaces, tickets, futures or plans
#include <ferry/ferry.hpp>

#include <cstdint>
#include <utility>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  const Kokkos::DefaultExecutionSpace second;
#ifdef FERRY_XFAIL_FIXED
  ferry::after(exec, second);
#else
  ferry::after(exec, 3);
#endif
}
