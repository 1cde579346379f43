// SPDX-License-Identifier: Apache-2.0
// The first array of a batch names the rows.
// expected-error: the first array of a row_prefetcher's source must hold indices: int32, uint32, int64 or uint64
#include <ferry/ferry.hpp>
#include <ferry/loader.hpp>

#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  const std::vector<float> numbers(10);
  const std::vector<int> rows(10);
  ferry::tensor<float, ferry::mapped_space> table("table", 4, 2);
#ifdef FERRY_XFAIL_FIXED
  ferry::row_prefetcher batches(exec, table, ferry::samples_of(rows, numbers));
#else
  ferry::row_prefetcher batches(exec, table, ferry::samples_of(numbers, rows));
#endif
}
