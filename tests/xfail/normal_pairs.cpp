// SPDX-License-Identifier: Apache-2.0
// A pair of 4-bit numbers has no value of its own.
// expected-error: this initialisation needs elements that are numbers
#include <ferry/ferry.hpp>

#include <cstdint>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<ferry::fp8_e4m3_t, ferry::mapped_space> codes("codes", 10, 4);
  ferry::tensor<ferry::fp4_e2m1_pair_t, ferry::mapped_space> pairs("pairs", 10, 4);
#ifdef FERRY_XFAIL_FIXED
  ferry::init::normal(exec, codes, 0.0, 1.0, 1);
#else
  ferry::init::normal(exec, pairs, 0.0, 1.0, 1);
#endif
}
