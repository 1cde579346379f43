// SPDX-License-Identifier: Apache-2.0
#include "optim/step_kit.hpp"
#include "support/test.hpp"

#include <boost/hana/tuple.hpp>

namespace ferry_test::faults_test {

// Rules, options and states with which no step can be taken: errors that say why, before anything is touched.

using space = ferry::mapped_space;

/// A rule of two buffers, one or the other of which may be left out. (In no unnamed namespace: there nvcc would call members
/// unused that only the concept asks for.)
struct two_buffers {
  static constexpr std::string_view name = "two_buffers";
  static constexpr int min_fields = 1;

  double lr = 0.5;
  bool has_first = true;
  bool has_second = true;

  template <class Compute>
  struct update {
    Compute lr;
    template <int N>
    KOKKOS_FUNCTION void apply(Compute& weight, Compute gradient, Compute (&state)[N]) const {
      state[0] += gradient;
      weight -= lr * state[0];
    }
  };
  [[nodiscard]] auto fields() const {
    return boost::hana::make_tuple(ferry::optim::field{"first", 0.0, has_first},
                                   ferry::optim::field{"second", 0.0, has_second});
  }
  template <class Compute>
  [[nodiscard]] update<Compute> coefficients(std::int64_t) const {
    return {static_cast<Compute>(lr)};
  }
  void check() const {}
};

TEST_CASE("fields of an own rule must fit its update", "[optim][faults]") {
  ferry::tensor<float, space> table("weights", 4, 3);
  const auto refused = [&](const two_buffers& rule, const std::string& why) {
    CHECK_THROWS_MATCHES(ferry::optim::make_state(rule, table), ferry::invalid_argument,
                         MessageMatches(ContainsSubstring(why)));
    CHECK_THROWS_MATCHES((ferry::optim::make_records<float, space>(rule, "records", 4, 3)),
                         ferry::invalid_argument, MessageMatches(ContainsSubstring(why)));
  };
  refused({.has_first = false, .has_second = false},
          "two_buffers: its options use 0 fields, but its min_fields is 1");
  CHECK(ferry::optim::make_state(two_buffers{.has_second = false}, table).fields() == 1);
  CHECK(ferry::optim::make_state(two_buffers{}, table).fields() == 2);
}

TEST_CASE("a state made for other fields is refused, as many as they are", "[optim][faults]") {
  const exec_space exec;
  const std::vector<float> before{1.0f, 2.0f, 3.0f};
  const two_buffers only_second{.has_first = false};
  const auto grads = make<ferry::device_space>("grads", 1, 3, before);
  auto table = make<space>("weights", 1, 3, before);
  auto state = ferry::optim::make_state(two_buffers{.has_second = false}, table);
  const std::vector<int> ids{0};
  CHECK_THROWS_MATCHES(
      ferry::step(exec, only_second, table, state, ids, grads).wait(), ferry::invalid_argument,
      MessageMatches(
          ContainsSubstring("need 'second', but the state of 'weights' has 'first' in its place")));
  CHECK_THROWS_MATCHES(
      ferry::step(exec, two_buffers{}, table, state, ids, grads).wait(), ferry::invalid_argument,
      MessageMatches(ContainsSubstring("need 2 state fields, but the state of 'weights' has 1")));
  CHECK(state.steps() == 0);
  CHECK(take(table) == before);
  auto records =
      ferry::optim::make_records<float, space>(ferry::optim::rmsprop{.momentum = 0.5}, "rows", 1, 3);
  CHECK_THROWS_MATCHES(
      ferry::step(exec, ferry::optim::rmsprop{.centered = true}, records, ids, grads).wait(),
      ferry::invalid_argument,
      MessageMatches(ContainsSubstring("need 'grad_avg', but the state of 'rows' has 'momentum_buffer'")));
  CHECK(records.steps() == 0);
}

TEST_CASE("a state that was moved from says so, and the new one goes on", "[optim][faults]") {
  const exec_space exec;
  const ferry::optim::sgd rule{.lr = 1.0};
  auto table = make<space>("weights", 1, 3, std::vector<float>{1.0f, 2.0f, 3.0f});
  const auto grads = make<ferry::device_space>("grads", 1, 3, std::vector<float>{1.0f, 1.0f, 1.0f});
  const std::vector<int> ids{0};
  auto state = ferry::optim::make_state(rule, table);
  ferry::step(exec, rule, table, state, ids, grads).wait();
  auto next = std::move(state);
  // NOLINTBEGIN(bugprone-use-after-move)
  CHECK_THROWS_MATCHES(ferry::step(exec, rule, table, state, ids, grads).wait(), ferry::invalid_argument,
                       MessageMatches(ContainsSubstring("moved")));
  CHECK_THROWS_AS(state.steps(), ferry::invalid_argument);
  // NOLINTEND(bugprone-use-after-move)
  CHECK(next.steps() == 1);
  CHECK(take(table) == std::vector<float>{0.0f, 1.0f, 2.0f});
  ferry::step(exec, rule, table, next, ids, grads).wait();
  CHECK(next.steps() == 2);
  CHECK(take(table) == std::vector<float>{-1.0f, 0.0f, 1.0f});
  auto records = ferry::optim::make_records<float, space>(rule, "records", 4, 3);
  const auto moved = std::move(records);
  CHECK_THROWS_AS(records.steps(), ferry::invalid_argument);  // NOLINT(bugprone-use-after-move)
  CHECK(moved.steps() == 0);
}

TEST_CASE("a state can't have taken a negative number of steps", "[optim][faults]") {
  ferry::tensor<float, space> table("weights", 4, 3);
  auto state = ferry::optim::make_state(ferry::optim::adam{}, table);
  state.set_steps(7);
  CHECK_THROWS_MATCHES(state.set_steps(-5), ferry::invalid_argument,
                       MessageMatches(ContainsSubstring("-5 steps")));
  CHECK(state.steps() == 7);
}

TEST_CASE("messages show small options as they are", "[optim][faults]") {
  const ferry::optim::sgd rule{.lr = -1e-9};
  CHECK_THROWS_MATCHES(rule.check(), ferry::invalid_argument,
                       MessageMatches(ContainsSubstring("lr is -1e-09, must be >= 0")));
  const ferry::optim::adam nan{.lr = std::nan("")};
  CHECK_THROWS_MATCHES(nan.check(), ferry::invalid_argument, MessageMatches(ContainsSubstring("lr is nan")));
  const ferry::optim::grad_scale scale{std::numeric_limits<double>::infinity()};
  CHECK_THROWS_MATCHES(scale.check(), ferry::invalid_argument,
                       MessageMatches(ContainsSubstring("scale is inf, must be > 0 and finite")));
}

// Steps that throw before they are enqueued: the state is as if there had been no call.

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

TEST_CASE("a state moves with its fields, also to itself", "[optim]") {
  const ferry::tensor<float, ferry::pinned_space> table("table", 5, 3);
  auto state = ferry::optim::make_state(ferry::optim::adam{}, table);
  state.field(0)(4, 2) = 7.0f;
  state.set_steps(3);
  auto& alias = state;
  state = std::move(alias);
  REQUIRE(state.fields() == 2);
  CHECK(state.field("exp_avg")(4, 2) == 7.0f);

  auto second = std::move(state);
  CHECK(second.field(0)(4, 2) == 7.0f);
  CHECK(second.steps() == 3);
  CHECK(state.fields() == 0);
  CHECK_THROWS_AS(state.steps(), ferry::invalid_argument);
  state = ferry::optim::make_state(ferry::optim::adam{}, table);
  CHECK(state.fields() == 2);
  CHECK(state.steps() == 0);
}

TEST_CASE("a state that was moved from refuses its row fields by name", "[optim]") {
  const ferry::tensor<float, ferry::pinned_space> table("table", 5, 3);
  auto state = ferry::optim::make_state(ferry::optim::rowwise_adagrad{}, table);
  REQUIRE(decltype(state)::row_fields == 1);
  const auto second = std::move(state);
  CHECK(second.row_field_at(0).rows() == 5);
  CHECK_THROWS_WITH(state.row_field_at(0), ContainsSubstring("moved elsewhere"));
}

}  // namespace ferry_test::faults_test
