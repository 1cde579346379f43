// SPDX-License-Identifier: Apache-2.0
// The rows of the table would be freed before the first batch. A slice refers to rows that stay.
// expected-error: a reference to the array is kept, so it can't be a temporary tensor, vector or array
#include <ferry/ferry.hpp>
#include <ferry/loader.hpp>

#include <cstdint>
#include <vector>

void refused(const Kokkos::DefaultExecutionSpace& exec) {
  using table = ferry::tensor<float, ferry::mapped_space>;
  const std::vector<std::int32_t> samples(10);
#ifdef FERRY_XFAIL_FIXED
  table weights("table", 4, 4);
  const ferry::row_prefetcher rows(exec, weights.first(4), ferry::samples_of(samples));
#else
  const ferry::row_prefetcher rows(exec, table("table", 4, 4), ferry::samples_of(samples));
#endif
}
