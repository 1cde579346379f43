// SPDX-License-Identifier: Apache-2.0
// Messages name it.
// expected-errors: 2 (is|are) its label
// most-lines: 40
#include <ferry/ferry.hpp>
#include <ferry/int8.hpp>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
#ifdef FERRY_XFAIL_FIXED
  const ferry::tensor<float, ferry::mapped_space> table("table", 100, 8);
  const ferry::rowwise_int8_tensor<ferry::mapped_space> codes("codes", 100, 8);
#else
  const ferry::tensor<float, ferry::mapped_space> table(100, 8);
  const ferry::rowwise_int8_tensor<ferry::mapped_space> codes(100, 8);
#endif
}
