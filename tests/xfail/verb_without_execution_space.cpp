// SPDX-License-Identifier: Apache-2.0
// A number is no execution space.
// expected-errors: 1 the first argument of a verb must be an instance of a Kokkos execution space
#include <ferry/ferry.hpp>

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 2, 4);
  const std::vector<std::int64_t> indices{1, 2};
#ifdef FERRY_XFAIL_FIXED
  ferry::gather(exec, table, indices, batch).wait();
#else
  ferry::gather(0, table, indices, batch).wait();
#endif
}
