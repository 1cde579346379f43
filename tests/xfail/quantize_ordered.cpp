// SPDX-License-Identifier: Apache-2.0
// Whole tables have no indices that could be sorted.
// expected-error: quantize and dequantize take whole tables, so there are no rows to sort
#include <ferry/ferry.hpp>
#include <ferry/int8.hpp>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::device_space> values("from", 10, 4);
  ferry::rowwise_int8_tensor<ferry::pinned_space> codes("to", 10, 4);
#ifdef FERRY_XFAIL_FIXED
  ferry::quantize(exec, values, codes, ferry::path::direct{}).wait();
#else
  ferry::quantize(exec, values, codes, ferry::path::ordered{}).wait();
#endif
}
