// SPDX-License-Identifier: Apache-2.0
// The sentence says how the verb is called.
// expected-errors: 25 called as
// most-lines: 670
#include <ferry/bags.hpp>
#include <ferry/ferry.hpp>
#include <ferry/int8.hpp>

#include <cstdint>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 2, 4);
  [[maybe_unused]] const std::vector<std::int64_t> indices{1, 2}, offsets{0, 1};
  const ferry::optim::adam rule;
  auto state = ferry::optim::make_state(rule, table);
  ferry::rowwise_int8_tensor<ferry::mapped_space> codes("codes", 10, 4);
#ifdef FERRY_XFAIL_FIXED
  static_cast<void>(ferry::gather<ferry::pinned_space>(exec, table, indices));
  ferry::gather_unique(exec, table, indices, batch).wait();
  ferry::scatter(exec, table, indices, batch).wait();
  ferry::scatter_add(exec, table, indices, batch).wait();
  ferry::copy(exec, batch, batch).wait();
  static_cast<void>(ferry::clone(exec, table));
  ferry::gather_bags(exec, table, indices, offsets, batch).wait();
  ferry::step_bags(exec, rule, table, state, indices, offsets, batch).wait();
  ferry::catch_up(exec, rule, table, state).wait();
  static_cast<void>(ferry::make_plan(exec, indices, 10));
  static_cast<void>(ferry::make_plan(exec, indices, table));
  static_cast<void>(ferry::unique(exec, indices, codes));
  static_cast<void>(ferry::plan_workspace_bytes(exec, 2, table));
  ferry::quantize(exec, table, codes).wait();
  ferry::dequantize(exec, codes, table).wait();
  ferry::init::zeros(exec, table);
  ferry::init::constant(exec, table, 1);
  ferry::init::uniform(exec, table, -1.0, 1.0, 7);
  ferry::init::normal(exec, table, 0.0, 1.0, 7);
  ferry::init::xavier_uniform(exec, table, 1.0, 7);
  ferry::init::kaiming_normal(exec, table, {}, 7);
  ferry::init::trunc_normal(exec, table, 0.0, 1.0, -2.0, 2.0, 7);
  static_cast<void>(ferry::optim::clip_grad_norm(exec, 1.0, batch));
  static_cast<void>(ferry::optim::grad_norm(exec, batch));
  static_cast<void>(ferry::explain(ferry::verb::gather, table, 2));
#else
  static_cast<void>(ferry::gather<ferry::pinned_space>(exec, table));
  ferry::gather_unique(exec, table, indices).wait();
  ferry::scatter(exec, table, indices).wait();
  ferry::scatter_add(exec, table, batch).wait();
  ferry::copy(exec, table).wait();
  ferry::clone(exec).wait();
  ferry::gather_bags(exec, table, indices, batch).wait();
  ferry::step_bags(exec, rule, table, state, indices, batch).wait();
  ferry::catch_up(exec, rule, table).wait();
  static_cast<void>(ferry::make_plan(exec, indices));
  static_cast<void>(ferry::unique(exec, indices));
  static_cast<void>(ferry::plan_workspace_bytes(exec, 2));
  ferry::quantize(exec, table).wait();
  ferry::dequantize(exec, codes).wait();
  ferry::init::zeros(exec);
  ferry::init::constant(exec, table);
  ferry::init::uniform(exec, table, -1.0, 1.0);
  ferry::init::normal(exec, table, 0.0, 1.0);
  ferry::init::custom(exec, table);
  ferry::init::xavier_uniform(exec, table, 1.0);
  ferry::init::kaiming_normal(exec, table, ferry::init::kaiming_options{});
  ferry::init::trunc_normal(exec, table, 0.0, 1.0, 7);
  static_cast<void>(ferry::optim::clip_grad_norm(exec, batch));
  static_cast<void>(ferry::optim::grad_norm(exec));
  static_cast<void>(ferry::explain(ferry::verb::gather, table));
#endif
}
