// SPDX-License-Identifier: Apache-2.0
// A braced list has no type.
// expected-errors: 5 write std::array\{1, 2, 3\} in place of \{1, 2, 3\}
#include <ferry/ferry.hpp>

#include <array>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 2, 4);
  const ferry::optim::sgd rule;
  auto state = ferry::optim::make_state(rule, table);
#ifdef FERRY_XFAIL_FIXED
  ferry::gather(exec, table, std::array{1, 2}, batch).wait();
  ferry::scatter(exec, table, std::array{1, 2}, batch).wait();
  ferry::scatter_add(exec, table, std::array{1, 2}, batch).wait();
  ferry::step(exec, rule, table, state, std::array{1, 2}, batch).wait();
  const auto plan = ferry::make_plan(exec, std::array{1, 2}, 10);
#else
  ferry::gather(exec, table, {1, 2}, batch).wait();
  ferry::scatter(exec, table, {1, 2}, batch).wait();
  ferry::scatter_add(exec, table, {1, 2}, batch).wait();
  ferry::step(exec, rule, table, state, {1, 2}, batch).wait();
  const auto plan = ferry::make_plan(exec, {1, 2}, 10);
#endif
}
