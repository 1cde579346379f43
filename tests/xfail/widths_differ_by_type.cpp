// SPDX-License-Identifier: Apache-2.0
// Both widths are known when the program is compiled.
// expected-error: the widths of table and batch are fixed by their types and differ
#include <ferry/ferry.hpp>

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 2, 4);
  const std::vector<std::int64_t> indices{1, 2};
  ferry::tensor<float, ferry::mapped_space, ferry::extents<ferry::dyn, 8>> eight("eight", 10);
  ferry::tensor<float, ferry::device_space, ferry::extents<ferry::dyn, 9>> nine("nine", 2);
#ifdef FERRY_XFAIL_FIXED
  ferry::gather(exec, nine, indices, nine).wait();
#else
  ferry::gather(exec, eight, indices, nine).wait();
#endif
}
