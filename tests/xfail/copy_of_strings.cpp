// SPDX-License-Identifier: Apache-2.0
// Strings own their characters, in a Kokkos::View, too.
// expected-errors: 1 the elements of an array must be trivially copyable, because verbs copy their bytes
// most-lines: 30
#include <ferry/ferry.hpp>

#include <string>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  const Kokkos::View<int*> source("from", 3), target("to", 3);
  const Kokkos::View<std::string*, Kokkos::HostSpace> names("names", 3), labels("others", 3);
#ifdef FERRY_XFAIL_FIXED
  ferry::copy(exec, source, target).wait();
#else
  ferry::copy(exec, names, labels).wait();
#endif
}
