// SPDX-License-Identifier: Apache-2.0
// The table is written.
// expected-first-error: the verb writes to this array, but its elements are const
// most-lines: 20
#include <ferry/ferry.hpp>

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 2, 4);
  const std::vector<std::int64_t> indices{1, 2};
  [[maybe_unused]] const auto& fixed = table;
#ifdef FERRY_XFAIL_FIXED
  ferry::scatter(exec, table, indices, batch).wait();
#else
  ferry::scatter(exec, fixed, indices, batch).wait();
#endif
}
