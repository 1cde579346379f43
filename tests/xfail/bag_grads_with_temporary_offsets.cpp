// SPDX-License-Identifier: Apache-2.0
// The work reads the offsets later.
// expected-error: a reference to the array is kept, so it can't be a temporary
#include <ferry/bags.hpp>
#include <ferry/optim/grad_norm.hpp>

#include <cstdint>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  namespace optim = ferry::optim;
  const ferry::tensor<float, ferry::device_space> pooled("pooled", 2, 4);
  const std::vector<std::int64_t> indices{1, 2}, offsets{0, 1};
  const auto plan = ferry::make_plan(exec, indices, 10);
#ifdef FERRY_XFAIL_FIXED
  static_cast<void>(optim::grad_norm(exec, optim::bag_grads(plan, offsets, pooled)).wait());
#else
  static_cast<void>(
      optim::grad_norm(exec, optim::bag_grads(plan, std::vector<std::int64_t>{0, 1}, pooled)).wait());
#endif
}
