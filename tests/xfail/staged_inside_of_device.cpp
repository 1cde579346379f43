// SPDX-License-Identifier: Apache-2.0
// Nothing has to go through host memory.
// expected-error: path::staged moves rows through host memory, but table and batch both live in device_space;
// use path::direct
#include <ferry/ferry.hpp>

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 2, 4);
  const std::vector<std::int64_t> indices{1, 2};
  ferry::tensor<float, ferry::device_space> far("far", 10, 4);
#ifdef FERRY_XFAIL_FIXED
  ferry::gather(exec, table, indices, batch, ferry::path::staged{}).wait();
#else
  ferry::gather(exec, far, indices, batch, ferry::path::staged{}).wait();
#endif
}
