// SPDX-License-Identifier: Apache-2.0
// It refers to its table.
// expected-errors: 1 so the table can't be a temporary
// most-lines: 20
#include <ferry/cache.hpp>
#include <ferry/ferry.hpp>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
#ifdef FERRY_XFAIL_FIXED
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  const ferry::cached_table hot(table, ferry::cache::first{.rows = 2});
#else
  const ferry::cached_table hot(ferry::tensor<float, ferry::mapped_space>("table", 10, 4),
                                ferry::cache::first{.rows = 2});
#endif
}
