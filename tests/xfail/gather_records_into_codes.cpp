// SPDX-License-Identifier: Apache-2.0
// Records are decoded by a gather, or copied as bytes.
// expected-first-error: gather into a quantized_tensor copies codes and scales
// most-lines: 20
#include <ferry/ferry.hpp>
#include <ferry/int8.hpp>

#include <cstdint>
#include <vector>

void refused(const Kokkos::DefaultExecutionSpace& exec) {
  const ferry::rowwise_int8_tensor<ferry::mapped_space> table("table", 10, 32);
  const std::vector<std::int64_t> indices{1, 2};
#ifdef FERRY_XFAIL_FIXED
  ferry::tensor<float, ferry::mapped_space> batch("batch", 2, 32);
#else
  ferry::rowwise_int8_tensor<ferry::mapped_space> batch("batch", 2, 32);
#endif
  ferry::gather(exec, table, indices, batch).wait();
}
