// SPDX-License-Identifier: Apache-2.0
// The plan comes first.
// expected-first-error: sparse_grads is called as sparse_grads\(plan, grads\)
// most-lines: 20
#include <ferry/ferry.hpp>

void refused(const Kokkos::DefaultExecutionSpace& exec, const ferry::row_plan& plan,
             ferry::tensor<float, ferry::mapped_space>& grads) {
#ifdef FERRY_XFAIL_FIXED
  static_cast<void>(ferry::optim::clip_grad_norm(exec, 1.0, ferry::optim::sparse_grads(plan, grads)));
#else
  static_cast<void>(ferry::optim::clip_grad_norm(exec, 1.0, ferry::optim::sparse_grads(grads, plan)));
#endif
}
