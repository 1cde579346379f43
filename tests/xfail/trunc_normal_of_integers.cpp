// SPDX-License-Identifier: Apache-2.0
// Rounded to integers, the values would not lie in the interval.
// expected-error: init::trunc_normal needs elements of float, double, half_t or bhalf_t
#include <ferry/ferry.hpp>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  [[maybe_unused]] ferry::tensor<float, ferry::mapped_space> grads("grads", 4, 2);
  [[maybe_unused]] ferry::tensor<int, ferry::mapped_space> integers("integers", 4, 2);
#ifdef FERRY_XFAIL_FIXED
  ferry::init::trunc_normal(exec, grads, 0, 1, -2, 2, 1);
#else
  ferry::init::trunc_normal(exec, integers, 0, 1, -2, 2, 1);
#endif
}
