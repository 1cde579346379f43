// SPDX-License-Identifier: Apache-2.0
// The rows of a batch are sorted by its plan.
// expected-first-error: bag_grads is called as bag_grads\(plan, offsets, pooled_grads, pooling
// most-lines: 20
#include <ferry/bags.hpp>

#include <cstdint>
#include <vector>

void refused(const Kokkos::DefaultExecutionSpace& exec,
             const ferry::tensor<float, ferry::mapped_space>& pooled) {
  const std::vector<std::int64_t> indices{1, 2}, offsets{0, 1};
#ifdef FERRY_XFAIL_FIXED
  const auto plan = ferry::make_plan(exec, indices, 10);
  static_cast<void>(ferry::optim::grad_norm(exec, ferry::optim::bag_grads(plan, offsets, pooled)));
#else
  static_cast<void>(ferry::optim::grad_norm(exec, ferry::optim::bag_grads(indices, offsets, pooled)));
#endif
}
