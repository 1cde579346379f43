// SPDX-License-Identifier: Apache-2.0
// Options are those of prefetch_options.
// expected-first-error: the options of a prefetcher are those of ferry::prefetch_options
// most-lines: 20
#include <ferry/loader.hpp>

#include <cstdint>
#include <vector>

void refused(const Kokkos::DefaultExecutionSpace& exec) {
  const std::vector<std::int64_t> indices{1, 2};
#ifdef FERRY_XFAIL_FIXED
  ferry::prefetcher batches(exec, ferry::samples_of(indices), {.batch = 2});
#else
  ferry::prefetcher batches(exec, ferry::samples_of(indices), {.batch_size = 2});
#endif
}
