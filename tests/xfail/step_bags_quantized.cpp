// SPDX-License-Identifier: Apache-2.0
// A step on bags pools rows of numbers and records.
// expected-first-error: of quantized tables step_bags trains a rowwise_int8_tensor
// most-lines: 20
#include <ferry/bags.hpp>
#include <ferry/ferry.hpp>
#include <ferry/quantized.hpp>

#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
#ifdef FERRY_XFAIL_FIXED
  ferry::rowwise_int8_tensor<ferry::mapped_space> table("table", 10, 32);
#else
  ferry::quantized_tensor<ferry::quantization::mxfp8, ferry::mapped_space> table("table", 10, 32);
#endif
  const ferry::optim::sgd rule{};
  ferry::tensor<float, ferry::device_space> grads("grads", 1, 32);
  auto state = ferry::optim::make_state(rule, table);
  const std::vector<int> indices{1, 2};
  static_cast<void>(ferry::step_bags(exec, rule, table, state, indices, 2, grads));
}
