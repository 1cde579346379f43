// SPDX-License-Identifier: Apache-2.0
// Without anything that comes earlier there is nothing to order.
// expected-error: after needs to be told what comes earlier: instances, tickets, futures or plans
#include <ferry/ferry.hpp>

#include <cstdint>
#include <utility>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  const Kokkos::DefaultExecutionSpace second;
#ifdef FERRY_XFAIL_FIXED
  ferry::after(exec, second);
#else
  ferry::after(exec);
#endif
}
