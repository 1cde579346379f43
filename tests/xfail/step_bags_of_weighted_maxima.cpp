// SPDX-License-Identifier: Apache-2.0
// A maximum has no weights.
// expected-error: the further array has the positions of the maxima
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
  ferry::tensor<std::int32_t, ferry::device_space> maxima("maxima", 2, 4);
  const std::vector<float> weights{1, 2, 3};
#ifdef FERRY_XFAIL_FIXED
  ferry::step_bags(exec, rule, table, state, indices, offsets, pooled, maxima, ferry::pooling::max{}).wait();
#else
  ferry::step_bags(exec, rule, table, state, indices, offsets, pooled, weights, ferry::pooling::max{}).wait();
#endif
}
