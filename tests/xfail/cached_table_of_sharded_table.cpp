// SPDX-License-Identifier: Apache-2.0
// Its rows lie on several ranks.
// expected-errors: 2 or another cached_table has no cache
// most-lines: 30
#include <ferry/cache.hpp>
#include <ferry/distributed.hpp>
#include <ferry/ferry.hpp>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  const auto world = ferry::communicator::threads(1);
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  ferry::sharded_table<float, ferry::mapped_space> sharded("table", world, 10, 4);
#ifdef FERRY_XFAIL_FIXED
  const ferry::cached_table hot(table, ferry::cache::first{.rows = 2});
#else
  const ferry::cached_table hot(sharded, ferry::cache::first{.rows = 2});
  const ferry::cached_table cold(exec, table, ferry::cache::first{.rows = 2});
#endif
}
