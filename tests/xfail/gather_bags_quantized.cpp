// SPDX-License-Identifier: Apache-2.0
// Bags are pooled from numbers and records.
// expected-error: gather_bags adds rows of numbers or of a rowwise_int8_tensor
#include <ferry/bags.hpp>
#include <ferry/ferry.hpp>
#include <ferry/quantized.hpp>

#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
#ifdef FERRY_XFAIL_FIXED
  ferry::rowwise_int8_tensor<ferry::mapped_space> table("table", 10, 32);
#else
  ferry::quantized_tensor<ferry::quantization::mxfp8, ferry::mapped_space> table("table", 10, 32);
#endif
  ferry::tensor<float, ferry::device_space> pooled("pooled", 1, 32);
  const std::vector<int> indices{1, 2};
  static_cast<void>(ferry::gather_bags(exec, table, indices, 2, pooled));
}
