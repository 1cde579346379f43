// SPDX-License-Identifier: Apache-2.0
// Kernels do not dereference rows of other ranks.
// expected-errors: 1 a row_prefetcher reads rows of a table that kernels dereference
// most-lines: 20
#include <ferry/distributed.hpp>
#include <ferry/ferry.hpp>
#include <ferry/loader.hpp>

#include <cstdint>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  const auto world = ferry::communicator::threads(1);
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  [[maybe_unused]] const std::vector<std::int64_t> indices{1, 2}, offsets{0, 1};
  ferry::sharded_table<float, ferry::mapped_space> sharded("table", world, 10, 4);
#ifdef FERRY_XFAIL_FIXED
  ferry::row_prefetcher batches(exec, table, ferry::samples_of(indices), {.batch = 2});
#else
  ferry::row_prefetcher batches(exec, sharded, ferry::samples_of(indices), {.batch = 2});
#endif
}
