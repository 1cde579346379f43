// SPDX-License-Identifier: Apache-2.0
#include "support/arrays.hpp"
#include "support/random.hpp"

#include <boost/hana/for_each.hpp>

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

/// Rows that miss thousands of steps under weight decay have the bits of dense training, step by step in the type of the
/// steps.
namespace ferry_test::late_rows_test {

namespace {

namespace optim = ferry::optim;

constexpr std::size_t rows = 12;
constexpr std::int64_t steps = 5000;
const ferry::step_count::catch_up policy;

/// Table and state, each element updated in the calling thread.
template <class Rule, class T, int Fields>
struct dense_training {
  std::vector<T> weights;
  std::vector<std::vector<T>> state;

  template <class Change>
  void step(const Rule& rule, std::int64_t number, const std::vector<T>& gradients, const Change& changed) {
    const auto now = rule.template coefficients<T>(number);
    for (std::size_t i = 0; i < weights.size(); ++i) {
      T field[Fields == 0 ? 1 : Fields] = {};
      for (std::size_t f = 0; f < state.size(); ++f) field[f] = state[f][i];
      const T before = weights[i];
      now.apply(weights[i], gradients[i], field);
      weights[i] = changed(before, weights[i]);
      for (std::size_t f = 0; f < state.size(); ++f) state[f][i] = field[f];
    }
  }
};

/// Ordinary weights, and now and then zero, a power of two, a huge or a subnormal number.
template <class T>
T any_weight(std::mt19937_64& random) {
  const T sign = random() % 2 == 0 ? T(1) : T(-1);
  switch (random() % 8) {
    case 0:
      return T(0);
    case 1:
      return sign * std::ldexp(T(1), -static_cast<int>(random() % 30));
    case 2:
      return sign * std::ldexp(T(1.25), static_cast<int>(random() % 60));
    case 3:
      return sign * std::numeric_limits<T>::denorm_min() * static_cast<T>(1 + random() % 4000);
    default:
      return static_cast<T>(std::normal_distribution<double>(0.0, 0.05)(random));
  }
}

template <class T>
void expect_bits(const std::vector<T>& now, const std::vector<T>& expected, std::int64_t step,
                 double negligible) {
  std::size_t wrong = 0, first = 0;
  for (std::size_t i = 0; i < now.size(); ++i)
    if (!(now[i] == expected[i]) && !(now[i] != now[i] && expected[i] != expected[i]) &&
        !(std::fabs(static_cast<double>(now[i])) < negligible &&
          std::fabs(static_cast<double>(expected[i])) < negligible))
      if (wrong++ == 0) first = i;
  CAPTURE(step, first, now[first], expected[first]);
  CHECK(wrong == 0);
}

struct unchanged {
  template <class T>
  T operator()(const T&, const T& after) const {
    return after;
  }
};

/// Weights may differ below `negligible`, where subnormal moments matter. Row r is named in the first 8 r steps, the first rows in none. `rule_at(step)` has the options of a step,
/// `chained(rule)` what the verbs take.
template <class T, int Fields, class RuleAt, class Chain, class Change = unchanged>
void late_rows_have_the_bits(std::size_t width, const RuleAt& rule_at, const Chain& chained,
                             const Change& changed = {}, double negligible = 0.0) {
  using Rule = std::remove_cvref_t<decltype(rule_at(std::int64_t{1}))>;
  CAPTURE(std::string(Rule::name), sizeof(T), width);
  const exec_space exec;
  auto random = generator(97);
  dense_training<Rule, T, Fields> dense;
  const std::size_t size = rows * width;
  for (std::size_t i = 0; i < size; ++i) dense.weights.push_back(any_weight<T>(random));
  const Rule initial = rule_at(1);
  boost::hana::for_each(initial.fields(), [&](const auto& field) {
    if (field.active) dense.state.emplace_back(size, static_cast<T>(field.initial));
  });
  REQUIRE(dense.state.size() == static_cast<std::size_t>(Fields));
  auto table = make<ferry::device_space>("weights", rows, width, dense.weights);
  auto state = optim::make_state(initial, table, policy);
  ferry::tensor<T, ferry::device_space> snapshot("seen", rows, width);
  std::vector<std::int64_t> every(rows);
  for (std::size_t row = 0; row < rows; ++row) every[row] = static_cast<std::int64_t>(row);

  for (std::int64_t s = 1; s <= steps; ++s) {
    const Rule rule = rule_at(s);
    std::vector<std::int64_t> named;
    std::vector<T> gradient, dense_gradient(size, T(0));
    for (std::size_t row = 3; row < rows; ++row)
      if (s <= static_cast<std::int64_t>(8 * row)) {
        named.push_back(static_cast<std::int64_t>(row));
        for (std::size_t c = 0; c < width; ++c) {
          // Some columns have tiny gradients, or zeros.
          const int exponent = c % 5 == 4 ? -static_cast<int>(random() % 100) : 0;
          const T value = c % 7 == 6 ? T(0) : std::ldexp(any_weight<float>(random), exponent);
          gradient.push_back(std::fabs(value) > T(1) ? T(0.5) : value);
          dense_gradient[row * width + c] = gradient.back();
        }
      }
    ferry::step(exec, chained(rule), table, state, named,
                make<ferry::device_space>("grads", named.size(), width, gradient), policy)
        .wait();
    dense.step(rule, s, dense_gradient, changed);
    if (s != 1 && s != 300 && s % 1111 != 0) continue;
    put(snapshot, std::vector<T>(size, T(-77)));
    ferry::gather(exec, chained(rule), table, state, every, snapshot).wait();
    expect_bits(take(snapshot), dense.weights, s, negligible);
  }
  ferry::catch_up(exec, chained(rule_at(steps)), table, state).wait();
  expect_bits(take(table), dense.weights, steps, negligible);
  // One power in place of many products.
  const double rounding =
      4.0 * static_cast<double>(steps) * static_cast<double>(std::numeric_limits<T>::epsilon());
  for (int f = 0; f < Fields; ++f) {
    const auto now = take(state.field(f));
    const auto& expected = dense.state[static_cast<std::size_t>(f)];
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < size; ++i) {
      const auto wide = static_cast<double>(expected[i]);
      const double floor = 1e4 * static_cast<double>(std::numeric_limits<T>::denorm_min());
      if (!(std::fabs(static_cast<double>(now[i]) - wide) <= floor + rounding * std::fabs(wide))) ++wrong;
    }
    CAPTURE(f);
    CHECK(wrong == 0);
  }
}

struct alone {
  template <class Rule>
  Rule operator()(const Rule& rule) const {
    return rule;
  }
};

/// A row that gets three gradients, none for a long time, and a gradient of zeros in the last step.
template <class Rule>
void late_row_stays_a_number(const Rule& rule, std::int64_t last) {
  CAPTURE(std::string(Rule::name), rule.weight_decay);
  const exec_space exec;
  const std::vector<float> initial{1.0f, -1.0f, 0.5f, 2.0f, -0.25f};
  const std::size_t width = initial.size();
  dense_training<Rule, float, 2> dense{initial, {std::vector<float>(width), std::vector<float>(width)}};
  auto table = make<ferry::device_space>("weights", 1, width, initial);
  auto state = optim::make_state(rule, table, policy);
  for (std::int64_t s = 1; s <= last; ++s) {
    const std::vector<std::int64_t> named(s <= 3 || s == last ? 1 : 0, 0);
    const std::vector<float> gradient(width, s <= 3 ? 0.1f : 0.0f);
    const std::vector<float> rows_of_batch(named.size() * width, gradient.front());
    ferry::step(exec, rule, table, state, named,
                make<ferry::device_space>("grads", named.size(), width, rows_of_batch), policy)
        .wait();
    dense.step(rule, s, gradient, unchanged{});
  }
  const auto weights = take(table);
  for (std::size_t c = 0; c < width; ++c) {
    CAPTURE(c, weights[c], dense.weights[c]);
    CHECK(std::fabs(weights[c] - dense.weights[c]) <= 1e-20f + 1e-5f * std::fabs(dense.weights[c]));
  }
}

/// Steady most of the time, by a schedule for a while, and with another decay from step 700 on.
double rate_at(std::int64_t step) {
  return step < 1500 ? 0.01 : step < 2200 ? 0.01 + 1e-5 * static_cast<double>(step - 1500) : 0.004;
}
double decay_at(std::int64_t step) { return step < 700 ? 0.02 : 0.3; }

}  // namespace

TEST_CASE("late rows of adamw have the bits of dense training", "[optim][step_count]") {
  const auto rule = [](std::int64_t s) {
    return optim::adamw{.lr = rate_at(s), .weight_decay = decay_at(s)};
  };
  late_rows_have_the_bits<float, 2>(37, rule, alone{});
  late_rows_have_the_bits<float, 2>(8, rule, alone{});
  late_rows_have_the_bits<double, 2>(5, rule, alone{});
  late_rows_have_the_bits<float, 3>(
      6,
      [](std::int64_t s) {
        return optim::adamw{.lr = rate_at(s), .eps = 1e-12, .weight_decay = decay_at(s), .amsgrad = true};
      },
      alone{});
  // Weights that become subnormal; betas that change.
  late_rows_have_the_bits<float, 2>(
      6,
      [](std::int64_t s) {
        return optim::adamw{
            .lr = 0.1, .betas = {s < 90 ? 0.8 : 0.9, 0.99}, .eps = 0x1p-40, .weight_decay = 0.4};
      },
      alone{}, unchanged{}, 1e-21);
  late_rows_have_the_bits<float, 2>(
      6, [](std::int64_t s) { return optim::adamw{.lr = s > 200 ? 0.0 : 0.01, .weight_decay = 0.0}; },
      alone{});
}

TEST_CASE("late rows of other rules have the bits of dense training", "[optim][step_count]") {
  late_rows_have_the_bits<float, 2>(
      7,
      [](std::int64_t s) {
        return optim::nadam{
            .lr = rate_at(s), .weight_decay = decay_at(s), .decoupled_weight_decay = s < 400 || s > 450};
      },
      alone{});
  const auto sgd = [](std::int64_t s) { return optim::sgd{.lr = rate_at(s), .weight_decay = decay_at(s)}; };
  late_rows_have_the_bits<float, 0>(9, sgd, alone{});
  late_rows_have_the_bits<double, 0>(4, sgd, alone{});
  late_rows_have_the_bits<float, 0>(
      4, [](std::int64_t) { return optim::sgd{.lr = 0.1, .weight_decay = 0.1, .maximize = true}; }, alone{});
  late_rows_have_the_bits<float, 1>(
      4,
      [](std::int64_t s) {
        return optim::sgd{.lr = rate_at(s), .momentum = 0.9, .weight_decay = decay_at(s)};
      },
      alone{});
  late_rows_have_the_bits<float, 1>(
      7, [](std::int64_t s) { return optim::lion{.lr = rate_at(s), .weight_decay = decay_at(s)}; }, alone{});
}

TEST_CASE("late rows in a chain have the bits of dense training", "[optim][step_count]") {
  const auto rule = [](std::int64_t s) {
    return optim::adamw{.lr = rate_at(s), .weight_decay = decay_at(s)};
  };
  late_rows_have_the_bits<float, 2>(8, rule, [](const auto& plain) {
    return optim::chain{plain, optim::clip_value{1e30}};
  });
  const auto factors = make<ferry::device_space>("factors", std::vector<float>(rows, 1.5f));
  late_rows_have_the_bits<float, 2>(
      8, rule,
      [&](const auto& plain) {
        return optim::chain{plain, optim::row_rates{factors}};
      },
      [](const float& before, const float& after) { return before + 1.5f * (after - before); });
}

TEST_CASE("late rows stay numbers without eps", "[optim][step_count]") {
  late_row_stays_a_number(optim::adam{.lr = 0.01, .betas = {0.5, 0.9}, .eps = 0.0}, 3000);
  // Moments fade while the weight decays, and it decays further without a term that is small enough.
  late_row_stays_a_number(optim::adamw{.lr = 0.01, .betas = {0.5, 0.9}, .eps = 0.0, .weight_decay = 1.0},
                          5000);
  late_row_stays_a_number(optim::adamw{.lr = 0.01, .betas = {0.5, 0.9}, .eps = 0.0, .weight_decay = 0.1},
                          3000);
  late_row_stays_a_number(
      optim::nadam{
          .lr = 0.01, .betas = {0.5, 0.9}, .eps = 0.0, .weight_decay = 1.0, .decoupled_weight_decay = true},
      5000);
}

TEST_CASE("transforms that change weights are known by their changed()", "[optim][transform]") {
  using ferry::kernels::changes_weights;
  struct inherits : optim::transform_defaults {};
  struct replaces : optim::transform_defaults {
    static float changed(const float& before, const float&, std::int64_t) { return before; }
  };
  STATIC_CHECK_FALSE(changes_weights<inherits>());
  STATIC_CHECK(changes_weights<replaces>());
  STATIC_CHECK_FALSE(changes_weights<optim::clip_value::kernel<float>>());
  STATIC_CHECK_FALSE(changes_weights<optim::clip_norm::kernel<double>>());
  STATIC_CHECK(changes_weights<optim::row_rates<float, ferry::device_space>::kernel<float>>());
}

}  // namespace ferry_test::late_rows_test
