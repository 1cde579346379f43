// SPDX-License-Identifier: Apache-2.0
// A gather takes no step.
// expected-error: step_count::\*, rounding::\* and nonfinite::\* say how an optimizer steps, so ferry::step takes
#include <ferry/ferry.hpp>

#include <cstdint>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 2, 4);
  const std::vector<std::int64_t> indices{1, 2};
#ifdef FERRY_XFAIL_FIXED
  ferry::gather(exec, table, indices, batch).wait();
#else
  ferry::gather(exec, table, indices, batch, ferry::step_count::per_row{}).wait();
#endif
}
