// SPDX-License-Identifier: Apache-2.0
// Gradients are fractions.
// expected-error: the gradients of the weights must be floating-point numbers
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
  const std::vector<float> weights{1, 2, 3};
  ferry::tensor<float, ferry::device_space> gradients("gradients", 3);
  ferry::tensor<std::int32_t, ferry::device_space> numbers("numbers", 3);
#ifdef FERRY_XFAIL_FIXED
  ferry::step_bags(exec, rule, table, state, indices, offsets, pooled, weights, gradients,
                   ferry::pooling::sum{})
      .wait();
#else
  ferry::step_bags(exec, rule, table, state, indices, offsets, pooled, weights, numbers,
                   ferry::pooling::sum{})
      .wait();
#endif
}
