// SPDX-License-Identifier: Apache-2.0
#include "support/random.hpp"

#include <ferry/ferry.hpp>

#include <catch2/catch_template_test_macros.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>

/// The phases in which step_count::catch_up only decays a weight, against the rule applied step by step: numbers of all
/// sizes, with equal bits.
namespace ferry_test::decay_phase_test {

namespace {

namespace optim = ferry::optim;

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

}  // namespace

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

}  // namespace ferry_test::decay_phase_test
