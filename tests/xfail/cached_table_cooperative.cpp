// SPDX-License-Identifier: Apache-2.0
// Kernels find the rows of device memory and of host memory.
// expected-error: kernels move the rows of a cached_table: path::direct or path::ordered
#include <ferry/cache.hpp>
#include <ferry/ferry.hpp>

#include <cstdint>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  ferry::cached_table hot(table, ferry::cache::first{2});
  const std::vector<std::int64_t> indices{1, 2, 3};
  ferry::tensor<float, ferry::device_space> batch("batch", 3, 4);
#ifdef FERRY_XFAIL_FIXED
  ferry::gather(exec, hot, indices, batch, ferry::path::ordered{}).wait();
#else
  ferry::gather(exec, hot, indices, batch, ferry::path::cooperative{}).wait();
#endif
}
