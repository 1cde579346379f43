// SPDX-License-Identifier: Apache-2.0
// A number of rows is an option of the policy.
// expected-errors: 2 says which rows are cached
// most-lines: 30
#include <ferry/cache.hpp>
#include <ferry/ferry.hpp>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
#ifdef FERRY_XFAIL_FIXED
  const ferry::cached_table hot(table, ferry::cache::frequency{.rows = 10});
#else
  const ferry::cached_table hot(table, 10);
  const ferry::cached_table cold(table);
#endif
}
