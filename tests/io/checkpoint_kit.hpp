// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/folder.hpp"
#include "support/test.hpp"

#include <ferry/io.hpp>

/// A training run that can be saved and loaded, and be compared with another one bit by bit.
namespace ferry_test {

/// The bytes of a tensor.
template <class T, class Space>
std::vector<std::uint8_t> bits(const ferry::tensor<T, Space>& array) {
  const auto elements = take(array);
  std::vector<std::uint8_t> result(elements.size() * sizeof(T));
  if (!result.empty()) std::memcpy(result.data(), elements.data(), result.size());
  return result;
}

inline constexpr std::size_t run_rows = 60, run_width = 9, run_batch = 24;

/// Batch number `step` of every run: some rows are named twice, many not at all.
struct run_batch_of {
  std::vector<std::int64_t> rows;
  std::vector<float> grads;
  explicit run_batch_of(std::int64_t step) {
    auto random = generator(9000 + static_cast<std::uint64_t>(step));
    rows = indices<std::int64_t>(random, run_batch, run_rows);
    grads = values<float>(random, run_batch * run_width);
  }
};

template <class Optimizer>
struct rule_in {
  static auto& of(Optimizer& whole) {
    if constexpr (requires { whole.rule; })
      return whole.rule;
    else
      return whole;
  }
};

/// Weights of T and their state in Space, trained by a rule with fixed policies.
template <class T, class Space, class Optimizer, class... Policies>
struct training_run {
  using state_type = decltype(ferry::optim::make_state(std::declval<const Optimizer&>(),
                                                       std::declval<const ferry::tensor<T, Space>&>()));
  Optimizer optimizer;
  ferry::tensor<T, Space> table;
  state_type state;
  ferry::tensor<float, ferry::device_space> grads{"grads", run_batch, run_width};

  explicit training_run(const Optimizer& rule, std::uint64_t salt = 0)
      : optimizer(rule), table("weights", run_rows, run_width), state(ferry::optim::make_state(rule, table)) {
    auto random = generator(8000 + salt);
    put(table, values<T>(random, run_rows * run_width));
  }
  /// Steps [begin, end). lr changes with the step where `schedule`.
  void train(std::int64_t begin, std::int64_t end, bool schedule = false) {
    const exec_space exec;
    for (std::int64_t step = begin; step < end; ++step) {
      const run_batch_of batch(step);
      put(grads, batch.grads);
      if (schedule) rule_in<Optimizer>::of(optimizer).lr *= step % 3 == 0 ? 0.9 : 1.02;
      ferry::step(exec, optimizer, table, state, batch.rows, grads, Policies{}...).wait();
    }
  }
  void add_to(ferry::io::checkpoint& run) {
    run.add("weights", table);
    run.add("optimizer", optimizer, state);
  }
  void require_same(training_run& run) {
    CHECK(bits(table) == bits(run.table));
    REQUIRE(state.fields() == run.state.fields());
    for (int i = 0; i < state.fields(); ++i) CHECK(bits(state.field(i)) == bits(run.state.field(i)));
    for (int i = 0; i < state_type::row_fields; ++i)
      CHECK(bits(state.row_field_at(i)) == bits(run.state.row_field_at(i)));
    CHECK(state.steps() == run.state.steps());
    CHECK(state.skipped() == run.state.skipped());
    CHECK(state.seed() == run.state.seed());
    REQUIRE(state.row_steps().size() == run.state.row_steps().size());
    CHECK(bits(state.row_steps()) == bits(run.state.row_steps()));
  }
};

/// Trains for a while, saves, loads into objects with other contents, and trains on: same bits as without.
template <class T, class Space, class Optimizer, class... Policies>
void check_resumed(const Optimizer& optimizer, bool schedule = false) {
  using run_type = training_run<T, Space, Optimizer, Policies...>;
  const temporary_folder folder;
  for (const std::int64_t stop : {0, 1, 7, 12}) {
    run_type never(optimizer);
    never.state.set_seed(4711);
    never.train(0, stop, schedule);
    {
      ferry::io::checkpoint run(folder.path() + "/run");
      never.add_to(run);
      run.save();
    }
    run_type resumed(optimizer, 1);
    resumed.train(40, 43, schedule);  // what is loaded replaces everything
    rule_in<Optimizer>::of(resumed.optimizer).lr = 77.0;
    ferry::io::checkpoint run(folder.path() + "/run");
    resumed.add_to(run);
    run.load();
    CHECK(rule_in<Optimizer>::of(resumed.optimizer).lr == rule_in<Optimizer>::of(never.optimizer).lr);
    never.require_same(resumed);
    never.train(stop, stop + 9, schedule);
    resumed.train(stop, stop + 9, schedule);
    never.require_same(resumed);
  }
}

}  // namespace ferry_test
