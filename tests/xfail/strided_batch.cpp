// SPDX-License-Identifier: Apache-2.0
// Nor are those of a LayoutStride view.
// expected-error: verbs that work on rows take row-major arrays only; give the Kokkos::View LayoutRight
#include <ferry/ferry.hpp>

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 2, 4);
  const std::vector<std::int64_t> indices{1, 2};
  using stride [[maybe_unused]] = Kokkos::View<float**, Kokkos::LayoutStride>;
  using right [[maybe_unused]] = Kokkos::View<float**, Kokkos::LayoutRight>;
#ifdef FERRY_XFAIL_FIXED
  ferry::scatter(exec, table, indices, right("view", 2, 4)).wait();
#else
  ferry::scatter(exec, table, indices, stride("view", Kokkos::LayoutStride(2, 4, 4, 1))).wait();
#endif
}
