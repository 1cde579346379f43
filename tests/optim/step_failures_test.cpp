// SPDX-License-Identifier: Apache-2.0
#include "optim/step_kit.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cstdint>
#include <vector>

/// Steps that throw before they are enqueued: the state is as if there had been no call.
namespace ferry_test::step_failures_test {

namespace {

using space = ferry::mapped_space;
constexpr std::size_t rows = 5, width = 7;

/// No memory but that of mapped tensors can be had while this lives.
struct famine {
  famine() {
    ferry::trim();
    limit(1);
  }
  famine(const famine&) = delete;
  famine& operator=(const famine&) = delete;
  ~famine() { limit(0); }

 private:
  static void limit(std::size_t bytes) {
    ferry::set_memory_budget<ferry::pageable_space>(bytes);
    ferry::set_memory_budget<ferry::device_space>(bytes);
  }
};

template <class Call>
void runs_out_of_memory(const Call& call) {
  const famine none;
  CHECK_THROWS_AS(call(), ferry::budget_exceeded);
}

}  // namespace

TEST_CASE("a first step that throws leaves the state to any policy", "[optim][step_count][budget]") {
  const exec_space exec;
  auto random = generator(81);
  const ferry::optim::adam rule{.lr = 0.1};
  const std::vector<std::int64_t> ids{4, 1, 4, 0};
  const auto start = values<double>(random, rows * width);
  const auto gradient = values<double>(random, ids.size() * width);
  const auto grads = make<ferry::device_space>("grads", ids.size(), width, gradient);
  const auto train = [&](auto first, auto second) {
    auto table = make<space>("weights", rows, width, start);
    auto state = ferry::optim::make_state(rule, table);
    runs_out_of_memory([&] { ferry::step(exec, rule, table, state, ids, grads, first).wait(); });
    CHECK(state.row_steps().size() == 0);
    CHECK(state.clock()->row_policy.empty());
    CHECK(state.steps() == 0);
    CHECK(take(table) == start);
    ferry::step(exec, rule, table, state, ids, grads, second).wait();
    CHECK(state.steps() == 1);
    plain_training<ferry::optim::adam, 2> expected(rule, start, width);
    for (const auto& [row, sum] : summed(gradient_batch<double>{ids, gradient}, width))
      expected.step(rule, 1, row, sum);
    CHECK(farthest_apart(take(table), expected.weights) < 1e-12);
  };
  using namespace ferry::step_count;
  train(per_row{}, global{});
  train(per_row{}, catch_up{});
  train(catch_up{}, global{});
  train(catch_up{}, per_row{});
  train(per_row{}, per_row{});
  train(catch_up{}, catch_up{});
}

TEST_CASE("a first step on records that throws leaves them to any policy", "[optim][step_count][budget]") {
  const exec_space exec;
  const ferry::optim::adam rule;
  auto records = ferry::optim::make_records<float, space>(rule, "records", rows, width);
  ferry::tensor<float, ferry::device_space> grads("grads", 2, width);
  ferry::init::zeros(exec, grads);
  const std::vector<int> ids{1, 1};
  runs_out_of_memory(
      [&] { ferry::step(exec, rule, records, ids, grads, ferry::step_count::per_row{}).wait(); });
  CHECK(records.row_steps().size() == 0);
  ferry::step(exec, rule, records, ids, grads).wait();
  CHECK(records.steps() == 1);
}

TEST_CASE("options of a step that throws are not remembered", "[optim][step_count][budget]") {
  const exec_space exec;
  const ferry::step_count::catch_up policy;
  auto random = generator(83);
  const auto start = values<double>(random, rows * width);
  auto table = make<space>("weights", rows, width, start);
  ferry::optim::sgd rule{.lr = 0.5, .momentum = 0.75};
  auto state = ferry::optim::make_state(rule, table);
  plain_training<ferry::optim::sgd, 1> dense(rule, start, width);
  for (std::int64_t s = 1; s <= 5; ++s) {
    const std::vector<std::int64_t> ids{s % 2};
    const auto gradient = values<double>(random, width);
    const auto grads = make<ferry::device_space>("grads", 1, width, gradient);
    auto second_rule = rule;
    second_rule.lr = 100.0;
    second_rule.weight_decay = 3.0;
    const auto as_it_was = take(table);
    runs_out_of_memory([&] { ferry::step(exec, second_rule, table, state, ids, grads, policy).wait(); });
    CHECK(take(table) == as_it_was);
    CHECK(state.steps() == s - 1);
    ferry::step(exec, rule, table, state, ids, grads, policy).wait();
    for (std::size_t row = 0; row < rows; ++row)
      dense.step(rule, s, row,
                 static_cast<std::int64_t>(row) == ids[0] ? gradient : std::vector<double>(width, 0.0));
    rule.lr *= 0.5;
  }
  ferry::catch_up(exec, rule, table, state).wait();
  CHECK(farthest_apart(take(table), dense.weights) < 1e-12);
}

}  // namespace ferry_test::step_failures_test
