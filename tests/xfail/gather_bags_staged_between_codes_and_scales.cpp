// SPDX-License-Identifier: Apache-2.0
// The host pools rows of its own memory.
// expected-error: path::staged pools the rows of host memory there, so codes and scales must both be in host memory
#include <ferry/bags.hpp>
#include <ferry/ferry.hpp>
#include <ferry/quantized.hpp>

#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
#ifdef FERRY_XFAIL_FIXED
  using scale_space = ferry::mapped_space;
#else
  using scale_space = ferry::device_space;
#endif
  ferry::quantized_tensor<ferry::quantization::mxfp8, ferry::mapped_space, scale_space> table("table", 10,
                                                                                              32);
  ferry::tensor<float, ferry::device_space> pooled("pooled", 1, 32);
  const std::vector<int> indices{1, 2};
  static_cast<void>(ferry::gather_bags(exec, table, indices, 2, pooled, ferry::path::staged{}));
}
