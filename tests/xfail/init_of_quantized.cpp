// SPDX-License-Identifier: Apache-2.0
// Codes have values together with their scales alone.
// expected-errors: 2 this argument must be an array of numbers, not a table of quantized rows; quantize
// most-lines: 30
#include <ferry/ferry.hpp>
#include <ferry/quantized.hpp>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::quantized_tensor<ferry::quantization::mxfp8, ferry::mapped_space> table("table", 10, 32);
  ferry::tensor<float, ferry::mapped_space> numbers("numbers", 10, 32);
#ifdef FERRY_XFAIL_FIXED
  ferry::init::uniform(exec, numbers, -1.0F, 1.0F, 7);
  ferry::quantize(exec, numbers, table).wait();
#else
  ferry::init::uniform(exec, table, -1.0F, 1.0F, 7);
  ferry::init::zeros(exec, table);
#endif
}
