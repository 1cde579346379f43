// SPDX-License-Identifier: Apache-2.0
// The bags of a row may lie on several ranks.
// expected-first-error: bag_grads is called as bag_grads\(plan, offsets, pooled_grads, pooling
// most-lines: 20
#include <ferry/bags.hpp>
#include <ferry/distributed.hpp>

#include <cstdint>
#include <vector>

using exec_space = Kokkos::DefaultExecutionSpace;

void refused(const exec_space& exec, [[maybe_unused]] const ferry::row_plan& plan,
             [[maybe_unused]] const ferry::sharded_plan<exec_space>& sharded_plan,
             ferry::tensor<float, ferry::mapped_space>& pooled) {
  const std::vector<std::int64_t> offsets{0, 1};
#ifdef FERRY_XFAIL_FIXED
  static_cast<void>(ferry::optim::clip_grad_norm(
      exec, 1.0, ferry::optim::bag_grads(plan, offsets, pooled, ferry::pooling::sum{})));
#else
  static_cast<void>(ferry::optim::clip_grad_norm(
      exec, 1.0, ferry::optim::bag_grads(sharded_plan, offsets, pooled, ferry::pooling::sum{})));
#endif
}
