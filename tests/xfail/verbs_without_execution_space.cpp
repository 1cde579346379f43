// SPDX-License-Identifier: Apache-2.0
// What has no execution space begins with the next argument.
// expected-errors: 20 the first argument of a verb must be an instance of a Kokkos execution space
#include <ferry/bags.hpp>
#include <ferry/ferry.hpp>
#include <ferry/int8.hpp>

#include <cstdint>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 2, 4);
  ferry::tensor<float, ferry::pinned_space> second("other", 10, 4);
  const std::vector<std::int64_t> indices{1, 2}, offsets{0, 1};
  const ferry::optim::sgd rule;
  auto state = ferry::optim::make_state(rule, table);
  ferry::rowwise_int8_tensor<ferry::mapped_space> codes("codes", 10, 4);
#ifdef FERRY_XFAIL_FIXED
  ferry::gather(exec, table, indices, batch).wait();
  ferry::gather(exec, codes, indices, batch).wait();
  static_cast<void>(ferry::gather<ferry::pinned_space>(exec, table, indices));
  static_cast<void>(ferry::gather<ferry::pinned_space, double>(exec, table, indices));
  ferry::gather(exec, rule, table, state, indices, batch).wait();
  ferry::scatter(exec, table, indices, batch).wait();
  ferry::scatter(exec, table, indices, batch, ferry::path::direct{}).wait();
  ferry::scatter_add(exec, table, indices, batch).wait();
  ferry::step(exec, rule, table, state, indices, batch).wait();
  ferry::catch_up(exec, rule, table, state).wait();
  ferry::copy(exec, table, second).wait();
  static_cast<void>(ferry::clone(exec, table));
  static_cast<void>(ferry::clone<ferry::pinned_space>(exec, table));
  ferry::gather_bags(exec, table, indices, offsets, batch).wait();
  ferry::step_bags(exec, rule, table, state, indices, offsets, batch).wait();
  ferry::quantize(exec, table, codes).wait();
  ferry::dequantize(exec, codes, table).wait();
  static_cast<void>(ferry::make_plan(exec, indices, 10));
  ferry::init::zeros(exec, table);
  ferry::init::constant(exec, table, 1);
  ferry::init::uniform(exec, table, 0.0, 1.0, 1);
  ferry::init::normal(exec, table, 0.0, 1.0, 1);
#else
  ferry::gather(table, indices, batch).wait();
  ferry::gather(codes, indices, batch).wait();
  static_cast<void>(ferry::gather<ferry::pinned_space>(table, indices));
  static_cast<void>(ferry::gather<ferry::pinned_space, double>(table, indices));
  ferry::gather(rule, table, state, indices, batch).wait();
  ferry::scatter(table, indices, batch).wait();
  ferry::scatter(table, indices, batch, ferry::path::direct{}).wait();
  ferry::scatter_add(table, indices, batch).wait();
  ferry::step(rule, table, state, indices, batch).wait();
  ferry::catch_up(rule, table, state).wait();
  ferry::copy(table, second).wait();
  static_cast<void>(ferry::clone(table));
  static_cast<void>(ferry::clone<ferry::pinned_space>(table));
  ferry::gather_bags(table, indices, offsets, batch).wait();
  ferry::step_bags(rule, table, state, indices, offsets, batch).wait();
  ferry::quantize(table, codes).wait();
  ferry::dequantize(codes, table).wait();
  static_cast<void>(ferry::make_plan(indices, 10));
  ferry::init::zeros(table);
  ferry::init::constant(table, 1);
  ferry::init::uniform(table, 0.0, 1.0, 1);
  ferry::init::normal(table, 0.0, 1.0, 1);
#endif
}
