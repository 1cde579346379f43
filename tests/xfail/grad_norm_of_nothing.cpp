// SPDX-License-Identifier: Apache-2.0
// There must be something to take the norm of.
// expected-error: grad_norm needs gradients: arrays, sparse_grads or bag_grads
#include <ferry/ferry.hpp>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  [[maybe_unused]] ferry::tensor<float, ferry::mapped_space> grads("grads", 4, 2);
#ifdef FERRY_XFAIL_FIXED
  static_cast<void>(ferry::optim::grad_norm(exec, grads));
#else
  static_cast<void>(ferry::optim::grad_norm(exec));
#endif
}
