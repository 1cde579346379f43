// SPDX-License-Identifier: Apache-2.0
// A staged step runs where the table lies.
// expected-error: path::staged steps where the table lies, so codes and scales must both be in host memory
#include <ferry/ferry.hpp>
#include <ferry/quantized.hpp>

#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
#ifdef FERRY_XFAIL_FIXED
  using scale_space = ferry::mapped_space;
#else
  using scale_space = ferry::device_space;
#endif
  ferry::quantized_tensor<ferry::quantization::mxfp8, ferry::mapped_space, scale_space> table("table", 10,
                                                                                              32);
  const ferry::optim::sgd rule{};
  ferry::tensor<float, ferry::device_space> grads("grads", 2, 32);
  auto state = ferry::optim::make_state(rule, table);
  const std::vector<int> indices{1, 2};
  static_cast<void>(ferry::step(exec, rule, table, state, indices, grads, ferry::path::staged{}));
}
