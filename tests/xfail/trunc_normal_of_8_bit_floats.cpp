// SPDX-License-Identifier: Apache-2.0
// Bounds of a truncated distribution are computed in the element type.
// expected-error: init::trunc_normal needs elements of float, double, half_t or bhalf_t
#include <ferry/ferry.hpp>

#include <cstdint>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<ferry::fp8_e4m3_t, ferry::mapped_space> codes("codes", 10, 4);
#ifdef FERRY_XFAIL_FIXED
  ferry::init::normal(exec, codes, 0.0, 1.0, 1);
#else
  ferry::init::trunc_normal(exec, codes, 0.0, 1.0, -2.0, 2.0, 1);
#endif
}
