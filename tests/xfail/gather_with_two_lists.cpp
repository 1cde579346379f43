// SPDX-License-Identifier: Apache-2.0
// A second list of indices is no policy.
// expected-errors: 2 the trailing arguments must be policies
// most-lines: 45
#include <ferry/ferry.hpp>

#include <cstdint>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 2, 4);
  [[maybe_unused]] const std::vector<std::int64_t> indices{1, 2}, offsets{0, 1};
#ifdef FERRY_XFAIL_FIXED
  ferry::gather(exec, table, indices, batch).wait();
  static_cast<void>(ferry::gather<ferry::pinned_space>(exec, table, indices));
#else
  ferry::gather(exec, table, indices, indices, batch).wait();
  static_cast<void>(ferry::gather<ferry::pinned_space>(exec, table, indices, batch));
#endif
}
