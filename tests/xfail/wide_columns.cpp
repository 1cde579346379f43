// SPDX-License-Identifier: Apache-2.0
// Each column takes launches of its own, so there are few.
// expected-error: take Kokkos::LayoutLeft, too, if the type fixes at most 8 columns
#include <ferry/ferry.hpp>

#include <cstdint>
#include <vector>

void refused(const Kokkos::DefaultExecutionSpace& exec) {
#ifdef FERRY_XFAIL_FIXED
  using columns = Kokkos::View<float* [8], Kokkos::LayoutLeft, Kokkos::SharedSpace>;
#else
  using columns = Kokkos::View<float* [9], Kokkos::LayoutLeft, Kokkos::SharedSpace>;
#endif
  const columns table("table", 10), batch("batch", 2);
  const std::vector<std::int64_t> indices{1, 2};
  ferry::scatter(exec, table, indices, batch).wait();
}
