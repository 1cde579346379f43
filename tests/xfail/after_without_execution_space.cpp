// SPDX-License-Identifier: Apache-2.0
// Tickets have no later work; instances do.
// expected-error: the first argument of after is the instance of a Kokkos execution space that comes later
#include <ferry/ferry.hpp>

#include <cstdint>
#include <utility>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::ticket ticket;
#ifdef FERRY_XFAIL_FIXED
  ferry::after(exec, ticket);
#else
  ferry::after(ticket, exec);
#endif
}
