// SPDX-License-Identifier: Apache-2.0
// Numbers of 8 bits are not pooled.
// expected-error: bags of rows are pooled by arithmetic, so table and pooled rows must hold numbers
#include <ferry/bags.hpp>
#include <ferry/ferry.hpp>

#include <cstdint>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<ferry::fp8_e4m3_t, ferry::mapped_space> codes("codes", 10, 4);
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 2, 4);
  const std::vector<std::int64_t> indices{1, 2, 3}, offsets{0, 2, 3};
#ifdef FERRY_XFAIL_FIXED
  ferry::gather_bags(exec, table, indices, offsets, batch).wait();
#else
  ferry::gather_bags(exec, codes, indices, offsets, batch).wait();
#endif
}
