// SPDX-License-Identifier: Apache-2.0
// There must be something to scale.
// expected-error: clip_grad_norm needs gradients: arrays, sparse_grads or bag_grads
#include <ferry/ferry.hpp>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  [[maybe_unused]] ferry::tensor<float, ferry::mapped_space> grads("grads", 4, 2);
#ifdef FERRY_XFAIL_FIXED
  static_cast<void>(ferry::optim::clip_grad_norm(exec, 1.0, grads));
#else
  static_cast<void>(ferry::optim::clip_grad_norm(exec, 1.0));
#endif
}
