// SPDX-License-Identifier: Apache-2.0
#include "support/arrays.hpp"

#include <ferry/ferry.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <boost/hana/tuple.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Rules, options and states with which no step can be taken: errors that say why, before anything is touched.
namespace ferry_test::faults_test {

namespace {

using space = ferry::mapped_space;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

}  // namespace

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

TEST_CASE("rows that count by one policy are not stepped by another", "[optim][faults]") {
  const exec_space exec;
  const ferry::optim::adam rule;
  const std::vector<float> before{1.0f, 2.0f, 3.0f};
  auto table = make<space>("weights", 1, 3, before);
  auto state = ferry::optim::make_state(rule, table, ferry::step_count::catch_up{});
  CHECK_THROWS_MATCHES(ferry::step(exec, rule, table, state, std::vector<int>{0},
                                   make<ferry::device_space>("grads", 1, 3, before))
                           .wait(),
                       ferry::invalid_argument,
                       MessageMatches(ContainsSubstring("Give every step the same policy")));
  CHECK(take(table) == before);
  CHECK(state.steps() == 0);
}

}  // namespace ferry_test::faults_test
