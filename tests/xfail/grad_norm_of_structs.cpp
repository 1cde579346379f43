// SPDX-License-Identifier: Apache-2.0
// Squares need numbers.
// expected-error: the norm of gradients needs elements that are numbers
#include <ferry/ferry.hpp>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  struct pair {
    float a, b;
  };
  [[maybe_unused]] ferry::tensor<pair, ferry::mapped_space> pairs("pairs", 4);
  [[maybe_unused]] ferry::tensor<float, ferry::mapped_space> grads("grads", 4, 2);
#ifdef FERRY_XFAIL_FIXED
  static_cast<void>(ferry::optim::grad_norm(exec, grads));
#else
  static_cast<void>(ferry::optim::grad_norm(exec, pairs));
#endif
}
