// SPDX-License-Identifier: Apache-2.0
// Numbers of 8 bits are stored, not computed with.
// expected-error: scatter_add adds, so the elements of table and values must be numbers
#include <ferry/ferry.hpp>

#include <cstdint>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<ferry::fp8_e4m3_t, ferry::mapped_space> codes("codes", 10, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 2, 4);
  const std::vector<std::int64_t> indices{1, 2};
#ifdef FERRY_XFAIL_FIXED
  ferry::scatter(exec, codes, indices, batch).wait();
#else
  ferry::scatter_add(exec, codes, indices, batch).wait();
#endif
}
