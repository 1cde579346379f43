// SPDX-License-Identifier: Apache-2.0
#include "support/test.hpp"

#include <boost/hana/for_each.hpp>

namespace ferry_test::late_rows_test {

// Rows that miss thousands of steps under weight decay have the bits of dense training, step by step in the type of the
// steps.

namespace optim = ferry::optim;

constexpr std::size_t rows = 12;
constexpr std::int64_t last_step = 5000;
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

/// Weights may differ below `negligible`, where subnormal moments matter. Row r is named in the first 8 r steps, the first rows
/// in none. `rule_at(step)` has the options of a step, `chained(rule)` what the verbs take.
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

  for (std::int64_t s = 1; s <= last_step; ++s) {
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
                make<ferry::device_space>("grads", named.size(), width, gradient), policy,
                ferry::path::direct{})
        .wait();
    dense.step(rule, s, dense_gradient, changed);
    if (s != 1 && s != 300 && s % 1111 != 0) continue;
    put(snapshot, std::vector<T>(size, T(-77)));
    ferry::gather(exec, chained(rule), table, state, every, snapshot).wait();
    expect_bits(take(snapshot), dense.weights, s, negligible);
  }
  ferry::catch_up(exec, chained(rule_at(last_step)), table, state).wait();
  expect_bits(take(table), dense.weights, last_step, negligible);
  // One power in place of many products.
  const double rounding =
      4.0 * static_cast<double>(last_step) * static_cast<double>(std::numeric_limits<T>::epsilon());
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
                make<ferry::device_space>("grads", named.size(), width, rows_of_batch), policy,
                ferry::path::direct{})
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

TEST_CASE("late rows of adamw have the bits of dense training", "[optim][step_count][once]") {
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

TEST_CASE("late rows of other rules have the bits of dense training", "[optim][step_count][once]") {
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

TEST_CASE("late rows in a chain have the bits of dense training", "[optim][step_count][once]") {
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

TEST_CASE("late rows stay numbers without eps", "[optim][step_count][once]") {
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

// The phases in which step_count::catch_up only decays a weight, against the rule applied step by step: numbers of all
// sizes, with equal bits.

/// A number of any size between subnormal and very large, now and then zero.
template <class T>
T any_size(std::mt19937_64& random, int least_exponent, int most_exponent) {
  if (random() % 8 == 0) return T(0);
  const auto exponent = std::uniform_int_distribution<int>(least_exponent, most_exponent)(random);
  // Often a power of two, next to which numbers lie closer.
  const double mantissa = random() % 4 == 0 ? 1.0 : std::uniform_real_distribution<double>(1.0, 2.0)(random);
  return static_cast<T>(std::ldexp(random() % 2 == 0 ? mantissa : -mantissa, exponent));
}

template <class T>
constexpr int lowest = std::numeric_limits<T>::min_exponent - std::numeric_limits<T>::digits;

/// Steps a weight both ways as long as it is said to decay alone. Returns the phase.
template <class Rule, class T, int N>
std::int64_t follow(const Rule& rule, std::int64_t first, T weight, const T (&state)[N], std::int64_t steps) {
  const auto resting = rule.template coefficients<T>(first);
  const std::int64_t phase = resting.decay_phase(weight, state, steps);
  CHECK(phase >= 0);
  CHECK(phase <= steps);
  T trained = weight, decayed = weight, moments[N];
  std::copy(state, state + N, moments);
  std::int64_t equal = 0;
  Rule lower = rule;
  for (; equal < phase; ++equal) {
    if (equal == phase / 2) lower.lr *= 0.75;  // as a schedule might
    // The corrections converge soon; powers take the test's time.
    const auto now = lower.template coefficients<T>(first + std::min<std::int64_t>(equal, 1000));
    now.apply(trained, T(0), moments);
    now.decay_weight(decayed);
    if (!(trained == decayed) && !(trained != trained && decayed != decayed)) break;  // or both are NaN
  }
  CAPTURE(std::string(Rule::name), rule.lr, rule.weight_decay, first, weight, state[0], state[N - 1], equal);
  CHECK(equal == phase);
  // The largest second moment has no part in decay_state.
  if (N > 2 && phase > 0) CHECK(moments[N - 1] == state[N - 1]);
  return phase;
}

/// Moments as after a gradient, which had any size, and an absence, or any numbers.
template <class T, int N>
void fill(std::mt19937_64& random, T (&state)[N]) {
  const int low = lowest<T>;
  state[0] = any_size<T>(random, low, 8);
  if constexpr (N > 1) {
    state[1] = random() % 4 == 0
                   ? std::fabs(any_size<T>(random, low, 8))
                   : static_cast<T>(std::fabs(any_size<T>(random, -10, 60)) * state[0] * state[0]);
    if constexpr (N > 2) state[2] = random() % 8 == 0 ? T(0) : state[1] * static_cast<T>(1 + random() % 3);
  }
}

template <int N, class T, class Rule>
void decays_as_said(std::mt19937_64& random, const Rule& rule, int trials = 100) {
  std::int64_t total = 0;
  for (int trial = 0; trial < trials; ++trial) {
    T state[N];
    fill(random, state);
    const int high = random() % 2 == 0 ? 4 : 100;
    const T weight = any_size<T>(random, trial % 4 == 0 ? lowest<T> : -40, high);
    const auto first = static_cast<std::int64_t>(1 + random() % 2000);
    if constexpr (N > 1)
      if (random() % 2 == 0) {
        // A term near the bound, among weights and moments of any size.
        const int exponent = -std::numeric_limits<T>::digits - 8 + static_cast<int>(random() % 12);
        const double divisor = std::sqrt(static_cast<double>(state[1])) + rule.eps;
        state[0] = static_cast<T>(std::ldexp(static_cast<double>(weight) * divisor / rule.lr, exponent));
      }
    total += follow<Rule, T, N>(rule, first, weight, state, static_cast<std::int64_t>(random() % 400));
  }
  CAPTURE(std::string(Rule::name), rule.lr, rule.weight_decay);
  CHECK(total > 0);
}

template <class T, class Rule>
std::int64_t phase_of(const Rule& rule, T weight, T first, T second, std::int64_t steps = 1000) {
  const T state[2] = {first, second};
  return rule.template coefficients<T>(10).decay_phase(weight, state, steps);
}

TEMPLATE_TEST_CASE("weights decay alone as long as rules say so", "[optim][step_count]", float, double) {
  auto random = generator(91);
  using T = TestType;
  decays_as_said<2, T>(random, optim::adamw{});
  decays_as_said<3, T>(random, optim::adamw{.lr = 0.01, .weight_decay = 0.1, .amsgrad = true});
  decays_as_said<2, T>(random, optim::adamw{.lr = 0.1, .eps = 0.0, .weight_decay = 0.1});
  decays_as_said<2, T>(random, optim::adamw{.lr = 0.1, .eps = 1e-20, .weight_decay = 0.5});
  decays_as_said<2, T>(random,
                       optim::adamw{.lr = 0.1, .betas = {0.9, 0.95}, .eps = 1e3, .weight_decay = 0.1});
  decays_as_said<2, T>(random, optim::adamw{.lr = 1.0, .betas = {0.5, 0.9}, .weight_decay = 0.25});
  decays_as_said<2, T>(random, optim::adamw{.lr = 1.0, .betas = {0.0, 0.6}, .weight_decay = 0.0625});
  decays_as_said<2, T>(random, optim::adamw{.lr = 0.1, .betas = {0.9, 0.9}, .weight_decay = 0.1});
  decays_as_said<2, T>(random, optim::adamw{.lr = 4.0, .weight_decay = 0.5, .maximize = true});
  decays_as_said<2, T>(random, optim::nadam{.weight_decay = 0.01, .decoupled_weight_decay = true});
  decays_as_said<2, T>(random, optim::nadam{.lr = 0.5,
                                            .betas = {0.8, 0.95},
                                            .eps = 0.0,
                                            .weight_decay = 0.1,
                                            .momentum_decay = 1.0,
                                            .decoupled_weight_decay = true});
  decays_as_said<1, T>(random, optim::sgd{.lr = 0.1, .weight_decay = 0.1});
  decays_as_said<1, T>(random, optim::sgd{.lr = 3.0, .weight_decay = 0.9, .maximize = true});
  decays_as_said<1, T>(random, optim::lion{.lr = 0.1, .weight_decay = 0.1});
}

TEMPLATE_TEST_CASE("weights decay towards moments that stay subnormal", "[optim][step_count]", float,
                   double) {
  using T = TestType;
  const T least = std::numeric_limits<T>::denorm_min();
  std::int64_t total = 0;
  for (const double eps : {0.0, 1e-8, 1.0})
    for (const T second : {T(0), T(500) * least, T(1e5) * least})
      for (int exponent = lowest<T>; exponent < 0; exponent += std::is_same_v<T, float> ? 1 : 7) {
        const optim::adamw rule{.lr = 0.1, .eps = eps, .weight_decay = 0.5};
        const T weight = std::ldexp(T(1.5), exponent);
        const double divisor = std::sqrt(static_cast<double>(second)) + eps;
        const double bound = std::ldexp(static_cast<double>(weight), -std::numeric_limits<T>::digits - 6);
        const T state[2] = {static_cast<T>(bound * divisor / rule.lr), second};
        total += follow<optim::adamw, T, 2>(rule, 2000, weight, state, 1200);
      }
  CHECK(total > 0);
}

TEMPLATE_TEST_CASE("a decay phase takes all steps where moments have faded", "[optim][step_count]", float,
                   double) {
  using T = TestType;
  const optim::adamw rule{.lr = 0.01, .weight_decay = 0.01};
  const T unit = std::numeric_limits<T>::epsilon();
  CHECK(phase_of(rule, T(0.5), T(unit * 1e-3), T(0.01)) == 1000);
  CHECK(phase_of(rule, T(-0.5), T(-unit * 1e-3), T(0.01), 100000) == 100000);
  CHECK(phase_of(rule, T(0.5), T(1e-3), T(0.01)) == 0);
  // Rows that no step has named, whatever their weights.
  for (const T weight : {T(0), T(1), std::numeric_limits<T>::denorm_min(), std::numeric_limits<T>::max()})
    CHECK(phase_of(rule, weight, T(0), T(0)) == 1000);
  CHECK(phase_of(optim::adamw{.eps = 0.0}, T(1), T(0), T(0)) == 0);  // 0 / 0
  CHECK(phase_of(optim::adamw{.betas = {0.0, 0.5}, .eps = 0.0}, T(1), T(0), T(1e-30)) == 0);
  // Moments that become subnormal do not vanish, so that the weight must stay above them.
  const T small = std::ldexp(T(1), lowest<T> / 2);
  const std::int64_t part = phase_of(rule, small, std::numeric_limits<T>::denorm_min(), T(0), 100'000'000);
  CHECK(part > 0);
  CHECK(part < 100'000'000);
  CHECK(phase_of(rule, std::numeric_limits<T>::min(), std::numeric_limits<T>::denorm_min(), T(0)) == 0);
  CHECK(phase_of(rule, T(0), std::numeric_limits<T>::denorm_min(), T(0)) == 0);
  // The term must shrink faster than the weight.
  CHECK(phase_of(optim::adamw{.lr = 1.0, .weight_decay = 0.2}, T(1), T(unit * 1e-6), T(0.01)) == 0);
  CHECK(phase_of(optim::adamw{.betas = {0.95, 0.9}}, T(1), T(unit * 1e-6), T(0.01)) == 0);
  // Without decay there is rest instead.
  CHECK(phase_of(optim::adamw{.weight_decay = 0.0}, T(1), T(0), T(0)) == 0);
  CHECK(phase_of(optim::nadam{.weight_decay = 0.1}, T(1), T(0), T(0)) == 0);
  CHECK(phase_of(optim::sgd{.momentum = 0.5, .weight_decay = 0.1}, T(1), T(0), T(0)) == 0);
  CHECK(phase_of(optim::lion{.weight_decay = 0.1}, T(1), T(1e-30), T(0)) == 0);
  const T nothing = std::numeric_limits<T>::quiet_NaN();
  CHECK(phase_of(rule, nothing, T(1e-30), T(0.01)) == 0);
  CHECK(phase_of(rule, T(1), nothing, T(0.01)) == 0);
  CHECK(phase_of(rule, T(1), T(1e-30), nothing) == 0);
}

TEST_CASE("an infinite second moment stays infinite over a long absence", "[optim][step_count]") {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  float state[2] = {1.0f, infinity};
  optim::adam{}.coefficients<float>(1).decay_state(state, 1'000'000);
  CHECK(state[0] == 0.0f);
  CHECK(state[1] == infinity);
}

}  // namespace ferry_test::late_rows_test
