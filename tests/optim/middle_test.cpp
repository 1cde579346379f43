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

/// Steps that a device computes without branches, against the rule's apply: equal bits, for numbers of all sizes.
namespace ferry_test::middle_test {

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

/// Steps an element both ways if its move is in the middle. Returns whether it is.
template <int N, class Rule>
bool moves_in_middle(std::mt19937_64& random, const Rule& rule, float gradient, float weight,
                     const float (&state)[N]) {
  const auto step = static_cast<std::int64_t>(1 + random() % 3000);
  const auto now = rule.template coefficients<watched>(step);
  watched moved = weight, field[N];
  float stepped = weight, moments[N];
  for (int f = 0; f < N; ++f) field[f] = moments[f] = state[f];
  beyond_middle = 0;
  now.advance(moved, gradient, field);
  if (!now.is_in_middle(field)) return false;
  now.move_in_middle(moved, field);
  rule.template coefficients<float>(step).apply(stepped, gradient, moments);
  CAPTURE(std::string(Rule::name), rule.lr, rule.eps, rule.betas[0], rule.betas[1], step, gradient, weight,
          state[0], state[1], state[N - 1]);
  CHECK(same_bits(moved, stepped));
  for (int f = 0; f < N; ++f) CHECK(same_bits(field[f], moments[f]));
  CHECK(beyond_middle == 0);
  return true;
}

/// Elements as in training, at the ends of the middle, and of any numbers.
template <int N, class Rule>
void middle_has_the_bits(const Rule& rule, int trials = 4000) {
  auto random = generator(103);
  int in_middle = 0;
  for (int trial = 0; trial < trials; ++trial) {
    const bool is_any = trial % 4 == 0;
    float gradient = random() % 2 == 0 ? 0.0f : is_any ? any_number(random) : any_size(random, -60, 30);
    float state[N], weight = is_any ? any_number(random) : any_size(random, -149, 127);
    if (is_any) {
      for (float& field : state) field = any_number(random);
    } else if (trial % 4 == 1) {
      gradient = 0.0f;
      state[0] = any_size(random, random() % 2 == 0 ? -82 : 62, random() % 2 == 0 ? -78 : 66);
      state[1] = std::fabs(any_size(random, random() % 2 == 0 ? -102 : 42, random() % 2 == 0 ? -98 : 46));
    } else {
      state[0] = any_size(random, -70, 45);
      state[1] = std::fabs(any_size(random, -10, 30)) * state[0] * state[0];
    }
    if constexpr (N > 2)
      if (!is_any) state[2] = state[1] * static_cast<float>(random() % 4);
    if (moves_in_middle<N>(random, rule, gradient, weight, state)) ++in_middle;
  }
  CAPTURE(std::string(Rule::name), rule.lr, rule.eps);
  CHECK(in_middle > trials / 10);
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
static_assert(!ferry::kernels::MovesInMiddle<halved_adam, watched, 2>);

/// Rules that hold such an update are compared byte by byte: it has no padding.
static_assert(sizeof(optim::adam::update<float>) == 9 * sizeof(float));
static_assert(sizeof(optim::adamw::update<float>) == 10 * sizeof(float));

}  // namespace

TEST_CASE("moves in the middle of the range have the bits of the rule", "[optim][step_count]") {
  middle_has_the_bits<2>(optim::adam{});
  middle_has_the_bits<2>(optim::adam{.lr = 0.1, .eps = 0.25, .maximize = true});
  middle_has_the_bits<2>(optim::adam{.lr = 10.0, .betas = {0.5, 0.5}, .eps = 0.0});
  middle_has_the_bits<2>(optim::adam{.lr = 1e-3, .betas = {0.99, 0.99999}, .eps = 1e-30});
  middle_has_the_bits<3>(optim::adam{.amsgrad = true});
  middle_has_the_bits<2>(optim::adamw{});
  middle_has_the_bits<2>(optim::adamw{.lr = 0.1, .eps = 0.25, .weight_decay = 0.5, .maximize = true});
  middle_has_the_bits<2>(optim::adamw{.weight_decay = 0.0});
  middle_has_the_bits<3>(optim::adamw{.lr = 0.01, .weight_decay = 0.1, .amsgrad = true});
}

TEST_CASE("moments near the ends of the range and extreme options are not in the middle", "[optim]") {
  const auto in_middle = [](const optim::adam& rule, float first, float second, std::int64_t step = 100) {
    const watched state[] = {first, second};
    return rule.coefficients<watched>(step).is_in_middle(state);
  };
  constexpr float nothing = std::numeric_limits<float>::quiet_NaN();
  const optim::adam rule;
  CHECK(in_middle(rule, 1e-3f, 1e-6f));
  CHECK(in_middle(rule, -1e-3f, 1e-6f));
  for (const float first : {0.0f, 1e-30f, 1e25f, nothing}) CHECK_FALSE(in_middle(rule, first, 1e-6f));
  for (const float second : {0.0f, -1e-6f, 1e-33f, 1e20f, nothing})
    CHECK_FALSE(in_middle(rule, 1e-3f, second));
  CHECK_FALSE(in_middle(optim::adam{.eps = 1e13}, 1e-3f, 1e-6f));
  CHECK_FALSE(in_middle(optim::adam{.betas = {0.9, 1.0 - 1e-13}}, 1e-3f, 1e-6f, 1));
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

}  // namespace ferry_test::middle_test
