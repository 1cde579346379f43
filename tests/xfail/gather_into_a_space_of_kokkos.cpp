// SPDX-License-Identifier: Apache-2.0
// ferry has spaces of its own.
// expected-errors: 2 is one of ferry's memory spaces
// most-lines: 60
#include <ferry/ferry.hpp>

#include <cstdint>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  [[maybe_unused]] const std::vector<std::int64_t> indices{1, 2}, offsets{0, 1};
#ifdef FERRY_XFAIL_FIXED
  static_cast<void>(ferry::gather<ferry::pageable_space>(exec, table, indices));
  static_cast<void>(ferry::gather<ferry::pageable_space, double>(exec, table, indices));
  static_cast<void>(ferry::clone<ferry::pageable_space>(exec, table));
#else
  static_cast<void>(ferry::gather<Kokkos::HostSpace>(exec, table, indices));
  static_cast<void>(ferry::gather<float>(exec, table, indices));
  static_cast<void>(ferry::clone<Kokkos::HostSpace>(exec, table));
#endif
}
