// SPDX-License-Identifier: Apache-2.0
// Codes travel as they are.
// expected-first-error: gather into a quantized_tensor copies codes and scales
// most-lines: 20
#include <ferry/ferry.hpp>
#include <ferry/quantized.hpp>

#include <cstdint>
#include <vector>

void refused(const Kokkos::DefaultExecutionSpace& exec) {
  using ferry::quantization::mxfp8, ferry::quantization::mxfp4;
  const ferry::quantized_tensor<mxfp8, ferry::mapped_space> table("table", 10, 32);
  const std::vector<std::int64_t> indices{1, 2};
#ifdef FERRY_XFAIL_FIXED
  ferry::quantized_tensor<mxfp8, ferry::mapped_space> batch("batch", 2, 32);
#else
  ferry::quantized_tensor<mxfp4, ferry::mapped_space> batch("batch", 2, 32);
#endif
  ferry::gather(exec, table, indices, batch).wait();
}
