// SPDX-License-Identifier: Apache-2.0
// The gradients of a row are added.
// expected-error: step_bags adds the gradients of all positions of a row
#include <ferry/bags.hpp>
#include <ferry/ferry.hpp>

#include <cstdint>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> pooled("pooled", 2, 4);
  const std::vector<std::int64_t> indices{1, 2, 3}, offsets{0, 2, 3};
  const ferry::optim::adam rule;
  auto state = ferry::optim::make_state(rule, table);
#ifdef FERRY_XFAIL_FIXED
  ferry::step_bags(exec, rule, table, state, indices, offsets, pooled, ferry::pooling::sum{}).wait();
#else
  ferry::step_bags(exec, rule, table, state, indices, offsets, pooled, ferry::duplicates::last{}).wait();
#endif
}
