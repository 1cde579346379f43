// SPDX-License-Identifier: Apache-2.0
// The rows of a LayoutLeft view are no rows in memory.
// expected-error: verbs that work on rows take row-major arrays only; give the Kokkos::View LayoutRight, .*
// or use ferry::copy
#include <ferry/ferry.hpp>

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 2, 4);
  const std::vector<std::int64_t> indices{1, 2};
  using left [[maybe_unused]] = Kokkos::View<float**, Kokkos::LayoutLeft>;
  using right [[maybe_unused]] = Kokkos::View<float**, Kokkos::LayoutRight>;
#ifdef FERRY_XFAIL_FIXED
  ferry::gather(exec, right("view", 10, 4), indices, batch).wait();
#else
  ferry::gather(exec, left("view", 10, 4), indices, batch).wait();
#endif
}
