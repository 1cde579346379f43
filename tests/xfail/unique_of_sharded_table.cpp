// SPDX-License-Identifier: Apache-2.0
// The rows of such a table lie on several devices.
// expected-error: unique counts the rows of one batch on its device
#include <ferry/distributed.hpp>
#include <ferry/ferry.hpp>

#include <cstdint>
#include <vector>

void refused(const Kokkos::DefaultExecutionSpace& exec,
             const ferry::sharded_table<float, ferry::mapped_space>& table) {
  const std::vector<std::int64_t> indices{1, 2, 2};
#ifdef FERRY_XFAIL_FIXED
  static_cast<void>(ferry::unique(exec, indices, static_cast<std::int64_t>(table.rows())));
#else
  static_cast<void>(ferry::unique(exec, indices, table));
#endif
}
