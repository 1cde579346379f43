// SPDX-License-Identifier: Apache-2.0
#include <ferry/rows/detail/drawn_floats.hpp>

#include "reference/random.hpp"
#include "support/test.hpp"

#include <catch2/matchers/catch_matchers_floating_point.hpp>

/// Initial values of elements that are drawn as floats.
namespace ferry_test::drawn_floats_test {

using Catch::Matchers::WithinAbs;
using Catch::Matchers::WithinRel;
namespace random = ferry::random;

constexpr float poison = -123.5f;

/// values.value() of each position, one by one.
template <class Values>
std::vector<float> one_by_one(const Values& values, std::uint64_t position, std::size_t count) {
  std::vector<float> expected(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t place = position + i;
    expected[i] = values.value(random::block_of(values.seed, place / 4, values.stream).word[place % 4]);
  }
  return expected;
}

bool have_equal_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

template <class Values>
void check_runs(const Values& values) {
  auto random = generator();
  for (int i = 0; i < 300; ++i) {
    // Runs across the end of the counter's lower half, too.
    std::uint64_t position = random() >> (random() % 64);
    if (i % 5 == 0) position = (std::uint64_t{1} << 34) - random() % 100;
    const auto count = static_cast<std::size_t>(random() % 300);
    std::vector<float> got(count + 2, poison);
    random::draw(values, position, static_cast<std::int64_t>(count), got.data() + 1);
    CAPTURE(position, count);
    REQUIRE(got.front() == poison);
    REQUIRE(got.back() == poison);
    REQUIRE(have_equal_bits({got.begin() + 1, got.end() - 1}, one_by_one(values, position, count)));
  }
}

TEST_CASE("runs of a host have the bits of single floats", "[init][floats]") {
  const std::uint64_t seed = generator(1)();
  constexpr float infinity = std::numeric_limits<float>::infinity();
  check_runs(random::uniform_floats{seed, 0.1f, 0.4f, -0.3f, 0.49999997f});
  check_runs(random::normal_floats{seed, 0.5f, 3.0f, -6.0f, infinity, 0, 0, 3});
  check_runs(random::normal_floats{seed, 0.5f, -3.0f, -1.0f, 4.0f, -1200000000, 2100000000u, 4});
}

TEST_CASE("the quantile in float is that of erfc", "[init][floats][once]") {
  auto random = generator(2);
  const auto check = [](std::int32_t place) {
    const double expected = reference::normal_quantile(place | 1);
    CAPTURE(place, expected);
    // Bisection ends at 2^-57.
    REQUIRE_THAT(random::normal_quantile_at(place), WithinRel(expected, 4e-7) || WithinAbs(expected, 1e-15));
  };
  for (int i = 0; i < 20000; ++i) {
    const auto word = static_cast<std::uint32_t>(random());
    check(static_cast<std::int32_t>(word));
    const std::uint32_t from_end = word >> (random() % 32);  // deep in the tails
    check(static_cast<std::int32_t>(0x7fffffffu - from_end / 2));
    check(-static_cast<std::int32_t>(0x7fffffffu - from_end / 2));
    check(static_cast<std::int32_t>(from_end / 2));  // next to the mean
  }
  for (const std::int32_t place :
       {0, 1, -1, -2, std::numeric_limits<std::int32_t>::max(), std::numeric_limits<std::int32_t>::min()})
    check(place);
}

TEST_CASE("uniform and normal floats are what the words say", "[init][floats]") {
  const exec_space exec;
  const std::uint64_t seed = generator(3)();
  ferry::tensor<float, ferry::device_space> table("table", 501, 9);
  ferry::init::uniform(exec, table, -9.5, 7.25, seed);
  const auto uniform = take(table);
  ferry::init::normal(exec, table, 1.0, 25.0, seed);
  const auto normal = take(table);
  for (std::size_t i = 0; i < uniform.size(); ++i) {
    REQUIRE_THAT(uniform[i], WithinAbs(-1.125 + 8.375 * reference::signed_unit(seed, i), 1e-6));
    const double expected = 1.0 + 25.0 * reference::normal_of_word(seed, i);
    REQUIRE_THAT(normal[i], WithinAbs(expected, 1e-6 * (1.0 + 25.0 * 6.0)));
  }
  ferry::init::uniform(exec, table, 0.0, 1.0, seed);
  for (std::size_t i = 0; const float value : take(table))
    REQUIRE(value == 0.5 + 0.5 * reference::signed_unit(seed, i++));  // no rounding
}

TEST_CASE("uniform floats stay in the interval, whatever it is", "[init][floats]") {
  auto random = generator(4);
  const exec_space exec;
  constexpr double largest = std::numeric_limits<float>::max();
  ferry::tensor<float, ferry::device_space> table("table", 4096);
  const auto check = [&](double low, double high) {
    ferry::init::uniform(exec, table, low, high, random());
    const auto got = take(table);
    CAPTURE(low, high);
    std::size_t wrong = 0;
    for (const float value : got) wrong += !(value >= low && value < high);
    CHECK(wrong == 0);
    const auto [least, most] = std::minmax_element(got.begin(), got.end());
    CHECK(*most - *least >= 0.98 * (high - low) - 1e-45);
  };
  for (int i = 0; i < 100; ++i) {
    const double a =
        std::ldexp(static_cast<double>(random()) - 0x1p63, -63 - static_cast<int>(random() % 60));
    const double b =
        std::ldexp(static_cast<double>(random()) - 0x1p63, -63 - static_cast<int>(random() % 60));
    if (std::abs(a - b) > 1e-4 * std::max(std::abs(a), std::abs(b))) check(std::min(a, b), std::max(a, b));
  }
  check(-largest, largest);
  check(-1e-30, 3e-30);
  check(0.0, largest);
  // Wider than the type: its largest numbers take the place of those beyond.
  ferry::init::uniform(exec, table, -1e300, 1e300, 1);
  for (const float value : take(table)) REQUIRE(std::abs(value) <= static_cast<float>(largest));
  using ferry::detail::numbers_between;
  CHECK(numbers_between<float>(-1, 0, true).most == -std::numeric_limits<float>::denorm_min());
  CHECK(numbers_between<ferry::half_t>(-1, 0, true).most == -0x1p-24f);
  CHECK(numbers_between<ferry::half_t>(0x1p-30, 1, true).least == 0x1p-24f);
  CHECK(numbers_between<ferry::half_t>(-1.0001, -1, false).least == -1.0f);
  // Narrower than its numbers: the nearest one.
  ferry::init::uniform(exec, table, 1.0 + 1e-12, 1.0 + 2e-12, 1);
  for (const float value : take(table)) REQUIRE(value == 1.0f);
}

TEMPLATE_TEST_CASE("16-bit elements are rounded floats", "[init][floats]", ferry::half_t, ferry::bhalf_t) {
  const exec_space exec;
  const std::uint64_t seed = generator(5)();
  ferry::tensor<TestType, ferry::device_space> narrow("narrow", 333, 5);
  ferry::tensor<float, ferry::device_space> wide("wide", 333, 5);
  ferry::init::normal(exec, narrow, 0.5, 2.0, seed);
  ferry::init::normal(exec, wide, 0.5, 2.0, seed);
  const auto got = take(narrow);
  const auto expected = take(wide);
  for (std::size_t i = 0; i < got.size(); ++i) REQUIRE(got[i].bits() == TestType(expected[i]).bits());
  ferry::init::uniform(exec, narrow, -0.7, 0.3, seed);
  for (const auto value : take(narrow))
    REQUIRE((static_cast<float>(value) >= -0.7f && static_cast<float>(value) < 0.3f));
}

TEST_CASE("slices and strides hold the values of their positions", "[init][floats]") {
  const exec_space exec;
  const std::uint64_t seed = generator(6)();
  for (const std::size_t width : {1u, 3u, 4u, 6u, 8u, 129u}) {
    ferry::tensor<float, ferry::mapped_space> table("table", 40, width);
    ferry::tensor<float, ferry::mapped_space> alone("alone", 17, width);
    ferry::init::constant(exec, table, poison);
    auto slice = table.rows_between(11, 28);  // its address is a multiple of 16 for some widths only
    ferry::init::normal(exec, slice, 0.0, 1.0, seed);
    ferry::init::normal(exec, alone, 0.0, 1.0, seed);
    const auto whole = take(table), part = take(alone);
    CAPTURE(width);
    for (std::size_t i = 0; i < whole.size(); ++i) {
      const std::size_t row = i / width;
      REQUIRE(whole[i] == (row >= 11 && row < 28 ? part[i - 11 * width] : poison));
    }
  }
}

TEST_CASE("narrow truncations of floats are drawn in double", "[init][floats]") {
  const exec_space exec;
  ferry::tensor<float, ferry::device_space> table("table", 3000);
  struct setting {
    double mean, deviation, low, high;
  };
  for (const setting truncation : {setting{0, 1, 4, 5}, setting{0, 1, -12, -11}, setting{1, 2, 1.0, 1.000001},
                                   setting{0, 1, -2, 2}, setting{0, 1, -0.1, 30}, setting{3, 0.1, -50, 50}}) {
    ferry::init::trunc_normal(exec, table, truncation.mean, truncation.deviation, truncation.low,
                              truncation.high, 77);
    const auto got = take(table);
    CAPTURE(truncation.low, truncation.high);
    const auto [least, most] = std::minmax_element(got.begin(), got.end());
    CHECK(*least >= static_cast<float>(truncation.low));
    CHECK(*most <= static_cast<float>(truncation.high));
    auto sorted = got;
    std::sort(sorted.begin(), sorted.end());
    CHECK(std::unique(sorted.begin(), sorted.end()) - sorted.begin() > 8);
    // The empirical distribution against that of erfc; 2.4 / sqrt(n) fails once in 10^5 runs.
    const auto below = [&](double x) {
      return 0.5 * std::erfc(-(x - truncation.mean) / truncation.deviation / std::sqrt(2.0));
    };
    const auto above = [&](double x) {
      return 0.5 * std::erfc((x - truncation.mean) / truncation.deviation / std::sqrt(2.0));
    };
    const bool upper = truncation.low > truncation.mean;  // where `below` has no digits
    const double mass = upper ? above(truncation.low) - above(truncation.high)
                              : below(truncation.high) - below(truncation.low);
    sorted = got;
    std::sort(sorted.begin(), sorted.end());
    double distance = 0.0;
    for (std::size_t i = 0; i < sorted.size(); ++i) {
      const double x = sorted[i];
      const double part =
          (upper ? above(truncation.low) - above(x) : below(x) - below(truncation.low)) / mass;
      distance = std::max(
          distance, std::abs(part - (static_cast<double>(i) + 0.5) / static_cast<double>(sorted.size())));
    }
    if (truncation.high - truncation.low > 0.01) CHECK(distance < 2.4 / std::sqrt(3000.0));
  }
}

TEST_CASE("floats of a seed are the same in every version", "[init][floats]") {
  const exec_space exec;
  ferry::tensor<float, ferry::device_space> table("table", 1000);
  const auto digest = [&] {
    std::uint64_t sum = 0xcbf29ce484222325ull;
    for (const float value : take(table))
      sum = (sum ^ std::bit_cast<std::uint32_t>(value)) * 0x100000001b3ull;
    return sum;
  };
  ferry::init::uniform(exec, table, -0.5, 0.25, 42);
  CHECK(digest() == 0x31b2dd761204de29ull);
  ferry::init::normal(exec, table, 0.0, 1.0, 42);
  CHECK(digest() == 0x8eac4e44c80910f8ull);
  ferry::init::trunc_normal(exec, table, 0.0, 1.0, -2.0, 2.0, 42);
  CHECK(digest() == 0xb2a59fa2fcaaf559ull);
}

}  // namespace ferry_test::drawn_floats_test
