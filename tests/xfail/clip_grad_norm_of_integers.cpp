// SPDX-License-Identifier: Apache-2.0
// A factor below 1 makes most integers 0.
// expected-error: clip_grad_norm scales gradients of float, double, half_t or bhalf_t
#include <ferry/ferry.hpp>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  [[maybe_unused]] ferry::tensor<float, ferry::mapped_space> grads("grads", 4, 2);
  [[maybe_unused]] ferry::tensor<int, ferry::mapped_space> integers("integers", 4, 2);
#ifdef FERRY_XFAIL_FIXED
  static_cast<void>(ferry::optim::clip_grad_norm(exec, 1.0, grads));
#else
  static_cast<void>(ferry::optim::clip_grad_norm(exec, 1.0, integers));
#endif
}
