// SPDX-License-Identifier: Apache-2.0
// A bundle holds policies only.
// expected-error: the trailing arguments must be policies: path::\*, bounds::\*, duplicates::\*, for a
// step also step_count::\*, rounding::\*, nonfinite::\*, or a policies<\.\.\.> bundle of them
#include <ferry/ferry.hpp>

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 2, 4);
  const std::vector<std::int64_t> indices{1, 2};
  struct fast {};
#ifdef FERRY_XFAIL_FIXED
  ferry::gather(exec, table, indices, batch, ferry::policies<ferry::bounds::clamp>{}).wait();
#else
  ferry::gather(exec, table, indices, batch, ferry::policies<ferry::bounds::clamp, fast>{}).wait();
#endif
}
