// SPDX-License-Identifier: Apache-2.0
// A pair of 4-bit numbers has no value of its own.
// expected-error: the element types of table and batch differ and at least one of them is no number, so rows
// can't be converted
#include <ferry/ferry.hpp>

#include <cstdint>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<ferry::fp4_e2m1_pair_t, ferry::mapped_space> pairs("pairs", 10, 4);
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 2, 4);
  const std::vector<std::int64_t> indices{1, 2};
#ifdef FERRY_XFAIL_FIXED
  ferry::gather(exec, table, indices, batch).wait();
#else
  ferry::gather(exec, pairs, indices, batch).wait();
#endif
}
