// SPDX-License-Identifier: Apache-2.0
// Gradients are rows of numbers.
// expected-errors: 1 the elements of an array must be trivially copyable, because verbs copy their bytes
// most-lines: 30
#include <ferry/ferry.hpp>

#include <cstdint>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 2, 4);
  const std::vector<std::int64_t> indices{1, 2};
  const ferry::optim::sgd rule;
  auto state = ferry::optim::make_state(rule, table);
  const std::vector<std::vector<float>> grads(2);
#ifdef FERRY_XFAIL_FIXED
  ferry::step(exec, rule, table, state, indices, batch).wait();
#else
  ferry::step(exec, rule, table, state, indices, grads).wait();
#endif
}
