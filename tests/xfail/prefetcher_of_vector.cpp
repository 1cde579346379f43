// SPDX-License-Identifier: Apache-2.0
// samples_of makes a source of it.
// expected-errors: 2 a prefetcher gets its batches from a source
// most-lines: 40
#include <ferry/ferry.hpp>
#include <ferry/loader.hpp>

#include <cstdint>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  [[maybe_unused]] const std::vector<std::int64_t> indices{1, 2}, offsets{0, 1};
#ifdef FERRY_XFAIL_FIXED
  ferry::prefetcher batches(exec, ferry::samples_of(indices), {.batch = 2});
  ferry::row_prefetcher rows(exec, table, ferry::samples_of(indices), {.batch = 2});
#else
  ferry::prefetcher batches(exec, indices, {.batch = 2});
  ferry::row_prefetcher rows(exec, table, indices, {.batch = 2});
  ferry::row_prefetcher none(exec, table, ferry::prefetch_options{.batch = 2});
#endif
}
