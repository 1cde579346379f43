// SPDX-License-Identifier: Apache-2.0
// A step on bags pools rows of numbers and records, also behind a cache.
// expected-error: of quantized tables step_bags trains a rowwise_int8_tensor
#include <ferry/bags.hpp>
#include <ferry/cache.hpp>
#include <ferry/ferry.hpp>
#include <ferry/quantized.hpp>

#include <vector>

void refused(const Kokkos::DefaultExecutionSpace& exec) {
#ifdef FERRY_XFAIL_FIXED
  ferry::rowwise_int8_tensor<ferry::mapped_space> table("table", 10, 32);
#else
  ferry::quantized_tensor<ferry::quantization::mxfp8, ferry::mapped_space> table("table", 10, 32);
#endif
  ferry::cached_table hot(table, ferry::cache::first{2});
  const ferry::optim::sgd rule{};
  ferry::tensor<float, ferry::device_space> grads("grads", 1, 32);
  auto state = ferry::optim::make_state(rule, hot);
  const std::vector<int> indices{1, 2};
  ferry::step_bags(exec, rule, hot, state, indices, 2, grads).wait();
}
