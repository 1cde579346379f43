// SPDX-License-Identifier: Apache-2.0
// A cache has one kind of directory.
// expected-errors: 1 so leave the third argument out
// most-lines: 20
#include <ferry/cache.hpp>
#include <ferry/ferry.hpp>

struct dense {};

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
#ifdef FERRY_XFAIL_FIXED
  const ferry::cached_table hot(table, ferry::cache::first{.rows = 2});
#else
  const ferry::cached_table hot(table, ferry::cache::first{.rows = 2}, dense{});
#endif
}
