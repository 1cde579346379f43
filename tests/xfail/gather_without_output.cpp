// SPDX-License-Identifier: Apache-2.0
// It goes into an array, or into a new tensor of a named space.
// expected-errors: 3 gather is called as gather\(exec, table, indices, out, policies...\)
// most-lines: 85
#include <ferry/ferry.hpp>

#include <cstdint>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 2, 4);
  [[maybe_unused]] const std::vector<std::int64_t> indices{1, 2}, offsets{0, 1};
#ifdef FERRY_XFAIL_FIXED
  ferry::gather(exec, table, indices, batch).wait();
  ferry::gather(exec, table, indices, batch, ferry::path::direct{}).wait();
  auto rows = ferry::gather<ferry::pinned_space>(exec, table, indices);
#else
  ferry::gather(exec, table, indices).wait();
  ferry::gather(exec, table, indices, ferry::path::direct{}).wait();
  auto rows = ferry::gather(exec, table);
#endif
}
