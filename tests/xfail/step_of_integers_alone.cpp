// SPDX-License-Identifier: Apache-2.0
// Indices without gradients.
// expected-error: if these integers name rows, their gradients come next
#include <ferry/ferry.hpp>

#include <cstdint>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> grads("grads", 10, 4);
  [[maybe_unused]] const std::vector<std::int64_t> indices{1, 2};
  const ferry::optim::adam rule;
  auto state = ferry::optim::make_state(rule, table);
#ifdef FERRY_XFAIL_FIXED
  ferry::step(exec, rule, table, state, grads).wait();
#else
  ferry::step(exec, rule, table, state, indices).wait();
#endif
}
