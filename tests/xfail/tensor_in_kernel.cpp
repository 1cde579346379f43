// SPDX-License-Identifier: Apache-2.0
// A kernel holds a copy of what its lambda captures.
// expected-first-error: a tensor is not copied by accident
// most-lines: 40
#include <ferry/ferry.hpp>

void refused(const Kokkos::DefaultExecutionSpace& exec, ferry::tensor<float, ferry::mapped_space>& table,
             Kokkos::View<float*, Kokkos::DefaultExecutionSpace> sums) {
#ifdef FERRY_XFAIL_FIXED
  const auto rows = table.view();
  Kokkos::parallel_for(
      Kokkos::RangePolicy(exec, 0, 10), KOKKOS_LAMBDA(const int i) { sums(i) += rows(i, 0); });
#else
  Kokkos::parallel_for(
      Kokkos::RangePolicy(exec, 0, 10), KOKKOS_LAMBDA(const int i) { sums(i) += table(i, 0); });
#endif
}
