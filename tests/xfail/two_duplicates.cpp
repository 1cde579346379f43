// SPDX-License-Identifier: Apache-2.0
// Repeated rows are handled one way, even if it is the same.
// expected-error: at most one duplicates policy may be given
#include <ferry/ferry.hpp>

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 2, 4);
  const std::vector<std::int64_t> indices{1, 2};
#ifdef FERRY_XFAIL_FIXED
  ferry::scatter(exec, table, indices, batch, ferry::duplicates::last{}).wait();
#else
  ferry::scatter(exec, table, indices, batch, ferry::duplicates::last{}, ferry::duplicates::last{}).wait();
#endif
}
