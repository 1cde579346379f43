// SPDX-License-Identifier: Apache-2.0
// Gradients of a row are combined in the order of a plan.
// expected-first-error: sparse_grads is called as sparse_grads\(plan, grads\)
// most-lines: 20
#include <ferry/ferry.hpp>

#include <cstdint>
#include <vector>

void refused(const Kokkos::DefaultExecutionSpace& exec, ferry::tensor<float, ferry::mapped_space>& grads) {
  const std::vector<std::int64_t> indices{1, 2};
#ifdef FERRY_XFAIL_FIXED
  const auto plan = ferry::make_plan(exec, indices, 10);
  static_cast<void>(ferry::optim::grad_norm(exec, ferry::optim::sparse_grads(plan, grads.first(2))));
#else
  static_cast<void>(ferry::optim::grad_norm(exec, ferry::optim::sparse_grads(indices, grads.first(2))));
#endif
}
