// SPDX-License-Identifier: Apache-2.0
#include "support/arrays.hpp"
#include "support/random.hpp"

#include <ferry/ferry.hpp>

#include <catch2/catch_test_macros.hpp>

#include <Kokkos_Core.hpp>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

/// Steps without a gradient that a device computes without branches, against the rule applied step by step:
/// equal bits, for numbers of all sizes.
namespace ferry_test::coast_test {

namespace {

namespace optim = ferry::optim;

/// Operands of middle_quotient and middle_root that are too near to the ends of the range.
int beyond_middle = 0;

bool is_in(float x, int least, int most) {
  return std::fabs(x) >= std::ldexp(1.0f, least) && std::fabs(x) <= std::ldexp(1.0f, most);
}

bool same_bits(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

/// A float with the functions of a device's number, which are called on the host.
class watched {
 public:
  watched() = default;
  KOKKOS_FUNCTION watched(float value) : value_(value) {}
  KOKKOS_FUNCTION explicit watched(double value) : value_(static_cast<float>(value)) {}
  KOKKOS_FUNCTION explicit watched(int value) : value_(static_cast<float>(value)) {}
  KOKKOS_FUNCTION operator float() const { return value_; }

  KOKKOS_FUNCTION friend watched operator+(watched a, watched b) { return a.value_ + b.value_; }
  KOKKOS_FUNCTION friend watched operator-(watched a, watched b) { return a.value_ - b.value_; }
  KOKKOS_FUNCTION friend watched operator*(watched a, watched b) { return a.value_ * b.value_; }
  KOKKOS_FUNCTION watched& operator-=(watched b) { return *this = *this - b; }
  KOKKOS_FUNCTION watched& operator*=(watched b) { return *this = *this * b; }

  [[nodiscard]] KOKKOS_FUNCTION watched middle_quotient(watched b) const {
    const float quotient = value_ / b.value_;
    KOKKOS_IF_ON_HOST((if (!is_in(value_, -100, 127) || !is_in(b.value_, -60, 60) ||
                           !is_in(quotient, -125, 125))++ beyond_middle;))
    return quotient;
  }
  [[nodiscard]] KOKKOS_FUNCTION watched middle_quotient(watched b, watched inverse) const {
    KOKKOS_IF_ON_HOST((if (!same_bits(inverse.value_, 1.0f / b.value_))++ beyond_middle;))
    return middle_quotient(b);
  }
  [[nodiscard]] KOKKOS_FUNCTION watched middle_root() const {
    KOKKOS_IF_ON_HOST((if (!is_in(value_, -100, 100) || value_ < 0.0f)++ beyond_middle;))
    return Kokkos::sqrt(value_);
  }
  [[nodiscard]] KOKKOS_FUNCTION watched rough_root() const { return Kokkos::sqrt(value_) * 1.0000005f; }
  [[nodiscard]] KOKKOS_FUNCTION watched magnitude() const { return Kokkos::fabs(value_); }

 private:
  float value_;
};

float any_size(std::mt19937_64& random, int least_exponent, int most_exponent) {
  const auto exponent = std::uniform_int_distribution<int>(least_exponent, most_exponent)(random);
  const double mantissa = random() % 4 == 0 ? 1.0 : std::uniform_real_distribution<double>(1.0, 2.0)(random);
  return static_cast<float>(std::ldexp(random() % 2 == 0 ? mantissa : -mantissa, exponent));
}

/// Zeros, infinities and NaN among numbers of any size.
float any_number(std::mt19937_64& random) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const float special[] = {0.0f, -0.0f, infinity, -infinity, std::numeric_limits<float>::quiet_NaN()};
  const auto kind = random() % 40;
  return kind < 5 ? special[kind] : any_size(random, -149, 127);
}

/// Steps an element both ways if it coasts. Returns whether it does.
template <int N, class Rule>
bool follow(std::mt19937_64& random, const Rule& rule, float weight, const float (&state)[N]) {
  const auto first = static_cast<std::int64_t>(1 + random() % 3000);
  const auto missed = static_cast<std::int64_t>(random() % 40);
  const auto ask = rule.template coefficients<watched>(first);
  Rule lower = rule;
  lower.lr *= random() % 2 == 0 ? 1.0 : random() % 8 == 0 ? 0.0 : 0.3;  // as a schedule might
  const watched wide_weight = weight;
  watched field[N];
  for (int f = 0; f < N; ++f) field[f] = state[f];
  beyond_middle = 0;
  const auto next = lower.template coefficients<watched>(first + missed);
  if (!ask.may_coast(next) || !ask.coasts(next, wide_weight, field)) return false;

  CAPTURE(std::string(Rule::name), rule.lr, rule.eps, rule.betas[0], rule.betas[1], first, missed, weight,
          state[0], state[1], state[N - 1]);
  for (const auto& plain :
       {rule.template coefficients<float>(first), lower.template coefficients<float>(first + missed)}) {
    CHECK_FALSE(plain.at_rest(weight, state));
    if constexpr (requires { plain.decay_phase(weight, state, std::int64_t{1}); })
      CHECK(plain.decay_phase(weight, state, std::int64_t{1000}) == 0);
  }
  watched coasted = weight;
  float stepped = weight, moments[N];
  for (int f = 0; f < N; ++f) moments[f] = state[f];
  bool equal = true;
  for (std::int64_t j = 0; j < optim::steps_between_asks; ++j) {
    ask.coast(lower.template coefficients<watched>(first + missed + j), coasted, field);
    lower.template coefficients<float>(first + missed + j).apply(stepped, 0.0f, moments);
    equal = equal && same_bits(coasted, stepped);
    for (int f = 0; f < N; ++f) equal = equal && same_bits(field[f], moments[f]);
    lower.lr *= 0.99;
  }
  CHECK(equal);
  CHECK(beyond_middle == 0);
  return true;
}

/// Elements as in training, and of any numbers.
template <int N, class Rule>
void coasts_with_the_bits(const Rule& rule, int trials = 4000) {
  auto random = generator(103);
  int coasting = 0;
  for (int trial = 0; trial < trials; ++trial) {
    float state[N], weight;
    if (trial % 4 == 0) {
      for (float& field : state) field = any_number(random);
      weight = any_number(random);
    } else {
      weight = any_size(random, trial % 4 == 1 ? -149 : -20, trial % 4 == 1 ? 127 : 2);
      state[0] = any_size(random, -70, 45);
      state[1] = std::fabs(any_size(random, -10, 30)) * state[0] * state[0];
      if (random() % 2 == 0) {
        // A term near the least one that moves the weight.
        const double divisor = std::sqrt(static_cast<double>(state[1])) + rule.eps;
        state[0] =
            static_cast<float>(std::ldexp(weight * divisor / rule.lr, -40 + static_cast<int>(random() % 20)));
      }
      if constexpr (N > 2) state[2] = state[1] * static_cast<float>(random() % 4);
    }
    if (follow<N>(random, rule, weight, state)) ++coasting;
  }
  CAPTURE(std::string(Rule::name), rule.lr, rule.eps);
  CHECK(coasting > trials / 10);
}

/// The device's sequences against its operators.
template <class Number>
struct compare_middle {
  const float* a;
  const float* b;
  std::int64_t* wrong;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const Number dividend(a[i]), divisor(b[i]);
    const float quotient = optim::middle_quotient(dividend, divisor), expected = dividend / divisor;
    const float shared = optim::middle_quotient(dividend, divisor, Number(1.0f) / divisor);
    const Number square(a[i] < 0.0f ? -a[i] : a[i]);
    const float root = optim::middle_root(square), expected_root = optim::square_root(square);
    if (quotient != expected || shared != expected || root != expected_root)
      Kokkos::atomic_add(wrong, std::int64_t{1});
  }
};

/// An update whose apply is its own.
struct halved_adam : optim::adam::update<watched> {
  template <int N>
  KOKKOS_FUNCTION void apply(watched& weight, watched gradient, watched (&state)[N]) const {
    optim::adam::update<watched>::apply(weight, gradient * watched(0.5f), state);
  }
};
static_assert(ferry::kernels::MovesInMiddle<optim::adam::update<watched>, watched, 2>);
static_assert(ferry::kernels::Coasts<optim::adam::update<watched>, watched, 2>);
static_assert(!ferry::kernels::MovesInMiddle<halved_adam, watched, 2>);
static_assert(!ferry::kernels::Coasts<halved_adam, watched, 2>);

/// Rules that hold such an update are compared byte by byte: it has no padding.
static_assert(sizeof(optim::adam::update<float>) == 11 * sizeof(float));
static_assert(sizeof(optim::adamw::update<float>) == 12 * sizeof(float));

}  // namespace

TEST_CASE("coasting elements have the bits of the rule", "[optim][step_count]") {
  coasts_with_the_bits<2>(optim::adam{});
  coasts_with_the_bits<2>(optim::adam{.lr = 0.1, .eps = 0.25, .maximize = true});
  coasts_with_the_bits<2>(optim::adam{.lr = 10.0, .betas = {0.5, 0.5}, .eps = 0.0});
  coasts_with_the_bits<2>(optim::adam{.lr = 1e-3, .betas = {0.99, 0.99999}, .eps = 1e-30});
  coasts_with_the_bits<3>(optim::adam{.amsgrad = true});
  coasts_with_the_bits<2>(optim::adamw{});
  coasts_with_the_bits<2>(optim::adamw{.lr = 0.1, .eps = 0.25, .weight_decay = 0.5, .maximize = true});
  coasts_with_the_bits<2>(optim::adamw{.weight_decay = 0.0});
  coasts_with_the_bits<3>(optim::adamw{.lr = 0.01, .weight_decay = 0.1, .amsgrad = true});
}

TEST_CASE("elements near the ends of the range or with a decayed gradient do not coast", "[optim]") {
  const auto coasts = [](const optim::adam& rule, float weight, float first, float second) {
    const auto now = rule.coefficients<float>(10);
    const float state[2] = {first, second};
    return now.may_coast(now) && now.coasts(now, weight, state);
  };
  constexpr float nothing = std::numeric_limits<float>::quiet_NaN();
  const optim::adam rule;
  CHECK(coasts(rule, 1.0f, 1e-3f, 1e-6f));
  CHECK(coasts(rule, 0.0f, -1e-3f, 1e-6f));
  CHECK_FALSE(coasts(rule, 1.0f, 0.0f, 1e-6f));
  CHECK_FALSE(coasts(rule, 1.0f, 1e-3f, 0.0f));
  CHECK_FALSE(coasts(rule, 1.0f, 1e-30f, 1e-6f));
  CHECK_FALSE(coasts(rule, 1.0f, 1e-3f, 1e20f));
  CHECK_FALSE(coasts(rule, nothing, 1e-3f, 1e-6f));
  CHECK_FALSE(coasts(rule, 1.0f, nothing, 1e-6f));
  CHECK_FALSE(coasts(rule, 1.0f, 1e-3f, nothing));
  CHECK_FALSE(coasts(rule, std::numeric_limits<float>::infinity(), 1e-3f, 1e-6f));
  CHECK_FALSE(coasts(optim::adam{.weight_decay = 0.1}, 1.0f, 1e-3f, 1e-6f));
  CHECK_FALSE(coasts(optim::adam{.betas = {0.4, 0.999}}, 1.0f, 1e-3f, 1e-6f));
  CHECK_FALSE(coasts(optim::adam{.lr = 0.0}, 1.0f, 1e-3f, 1e-6f));
}

TEST_CASE("quotients and roots in the middle of the range have the bits of operators", "[optim]") {
  using number = ferry::detail::exact_number<exec_space, float>;
  constexpr std::size_t count = std::size_t{1} << 22;
  auto random = generator(107);
  std::vector<float> a(count), b(count);
  for (std::size_t i = 0; i < count; ++i) {
    a[i] = any_size(random, -100, 60);
    // Quotients near a number or half way between two, now and then.
    b[i] = i % 2 == 0 ? any_size(random, -60, 59) : a[i] * std::fabs(any_size(random, -1, 0));
    if (!is_in(b[i], -60, 60) || !is_in(a[i] / b[i], -125, 125)) b[i] = 1.0f;
  }
  const auto dividends = make<ferry::device_space>("dividends", a),
             divisors = make<ferry::device_space>("divisors", b);
  auto wrong = make<ferry::device_space>("wrong", std::vector<std::int64_t>{0});
  Kokkos::parallel_for("ferry_test::compare_middle",
                       Kokkos::RangePolicy<exec_space, Kokkos::IndexType<std::int64_t>>(
                           exec_space{}, 0, static_cast<std::int64_t>(count)),
                       compare_middle<number>{dividends.data(), divisors.data(), wrong.data()});
  Kokkos::fence("ferry_test::compare_middle");
  CHECK(take(wrong).front() == 0);
}

}  // namespace ferry_test::coast_test
