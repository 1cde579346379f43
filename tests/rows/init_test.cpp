// SPDX-License-Identifier: Apache-2.0
#include "support/matrix.hpp"
#include "support/test.hpp"

#include <catch2/matchers/catch_matchers_floating_point.hpp>

namespace ferry_test::init_test {

/// Transferred only: no number.
struct tagged {
  std::int32_t row;
  std::int16_t column;
  std::int8_t mark[3];
};

struct tag_of {
  KOKKOS_FUNCTION tagged operator()(std::int64_t row, std::int64_t column) const {
    return {static_cast<std::int32_t>(row), static_cast<std::int16_t>(column), {1, 2, 3}};
  }
};

struct place_of {
  double scale;
  KOKKOS_FUNCTION double operator()(std::int64_t row, std::int64_t column) const {
    return scale * static_cast<double>(100 * row + column);
  }
};

/// FNV-1a over the bytes.
template <class T>
std::uint64_t hash(const std::vector<T>& values) {
  std::uint64_t hash = 0xcbf29ce484222325ull;
  std::vector<unsigned char> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  for (const auto byte : bytes) hash = (hash ^ byte) * 0x100000001b3ull;
  return hash;
}

constexpr std::size_t rows = 257, width = 13;

/// The generator, element by element on the host. drawn_floats_test.cpp has the oracle of floats.
template <class T, class Generator>
std::vector<T> loop_over(const Generator& values) {
  std::vector<T> expected;
  for (std::size_t i = 0; i < rows * width; ++i)
    expected.push_back(values(0, 0, static_cast<std::int64_t>(i)));
  return expected;
}

/// The numbers that a plain loop on the host makes of seed and position.
template <class T>
std::vector<T> uniform_loop(std::uint64_t seed, double low, double high) {
  if constexpr (ferry::kernels::is_drawn_as_float<T>)
    return loop_over<T>(ferry::detail::uniform_generator<T>(low, high, seed));
  std::vector<T> expected;
  for (std::size_t i = 0; i < rows * width; ++i) {
    // Integers: any of those in the interval.
    const double drawn = std::is_integral_v<T>
                             ? ferry::random::uniform(seed, i, std::ceil(low), std::ceil(high))
                             : ferry::random::uniform(seed, i, low, high);
    T value = std::is_integral_v<T> ? ferry::convert<T>(std::floor(drawn)) : ferry::convert<T>(drawn);
    if (!(static_cast<double>(value) < high)) value = ferry::convert<T>(low);
    expected.push_back(value);
  }
  return expected;
}

template <class T>
std::vector<T> normal_loop(std::uint64_t seed, double mean, double deviation) {
  if constexpr (ferry::kernels::is_drawn_as_float<T>)
    return loop_over<T>(ferry::detail::normal_generator<T>(mean, deviation, seed));
  std::vector<T> expected;
  for (const double drawn : loop_over<double>(ferry::detail::normal_generator<double>(mean, deviation, seed)))
    expected.push_back(std::is_integral_v<T> ? ferry::convert<T>(std::nearbyint(drawn))
                                             : ferry::convert<T>(drawn));
  return expected;
}

// A value depends on its position, whatever the memory: every type in two spaces.
using element_and_space = zipped<decltype(elements), decltype(spaces), 0, 3>;

TEMPLATE_LIST_TEST_CASE("initial values have the same bits everywhere", "[init]", element_and_space) {
  using T = at<0, TestType>;
  using space = at<1, TestType>;
  const exec_space exec;
  auto random = generator();
  const std::uint64_t seed = random();
  ferry::tensor<T, space> table("table", rows, width);

  ferry::init::uniform(exec, table, -9.5, 7.25, seed);
  CHECK(hash(take(table)) == hash(uniform_loop<T>(seed, -9.5, 7.25)));
  ferry::init::normal(exec, table, 1.0, 25.0, seed);
  CHECK(hash(take(table)) == hash(normal_loop<T>(seed, 1.0, 25.0)));
  ferry::init::zeros(exec, table);
  CHECK(hash(take(table)) == hash(std::vector<T>(rows * width, T{})));
  ferry::init::custom(exec, table, place_of{0.25});
  const auto places = take(table);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < width; ++j)
      wrong += std::memcmp(&places[i * width + j],
                           std::vector<T>{ferry::convert<T>(0.25 * static_cast<double>(100 * i + j))}.data(),
                           sizeof(T)) != 0;
  CHECK(wrong == 0);
}

TEST_CASE("the stream of a seed is the same in every version", "[init]") {
  ferry::tensor<double, ferry::device_space> table("table", 4);
  ferry::init::uniform(exec_space{}, table, 0.0, 1.0, 0);
  // Philox of counters 0 to 3 under key 0, upper 53 of the first 64 bits; the first is the authors' known
  // answer.
  CHECK(take(table)[0] == static_cast<double>((0x6627e8d5e169c58dull) >> 11) * 0x1p-53);
  CHECK(hash(take(table)) == 0x41a519bd88bfc2a0ull);
  ferry::init::normal(exec_space{}, table, 0.0, 1.0, 42);
  CHECK(hash(take(table)) == 0x1f72fe9236933348ull);
}

TEST_CASE("values depend on the position, not on rows and columns", "[init]") {
  const exec_space exec;
  ferry::tensor<float, ferry::mapped_space> table("table", 12, 10);
  ferry::tensor<float, ferry::device_space> cube("cube", 4, 5, 6);
  ferry::tensor<float, ferry::pageable_space, ferry::extents<ferry::dyn, 40>> fixed("fixed", 3);
  ferry::init::normal(exec, table, 0.0, 1.0, 9);
  ferry::init::normal(exec, cube, 0.0, 1.0, 9);
  ferry::init::normal(exec, fixed, 0.0, 1.0, 9);
  CHECK(take(table) == take(cube));
  CHECK(take(table) == take(fixed));
}

TEST_CASE("uniform values stay inside of the interval after rounding", "[init]") {
  const exec_space exec;
  // Half of the draws round up to the open end.
  ferry::tensor<ferry::half_t, ferry::device_space> narrow("narrow", 1000);
  ferry::init::uniform(exec, narrow, 1.0, 1.0 + 0x1p-10, 3);
  for (const auto value : take(narrow)) REQUIRE(static_cast<float>(value) == 1.0f);
  ferry::tensor<float, ferry::device_space> point("point", 100);
  ferry::init::uniform(exec, point, 0.75, 0.75, 3);
  for (const auto value : take(point)) REQUIRE(value == 0.75f);
}

TEST_CASE("any element can be zeroed or made by a function", "[init]") {
  const exec_space exec;
  ferry::tensor<tagged, ferry::device_space> table("table", 20, 3);
  ferry::init::custom(exec, table, tag_of{});
  auto rows_read = take(table);
  for (std::size_t i = 0; i < rows_read.size(); ++i) {
    REQUIRE(rows_read[i].row == static_cast<std::int32_t>(i / 3));
    REQUIRE(rows_read[i].column == static_cast<std::int16_t>(i % 3));
    REQUIRE(rows_read[i].mark[2] == 3);
  }
  ferry::init::zeros(exec, table);
  rows_read = take(table);
  for (const auto& tag : rows_read) REQUIRE((tag.row == 0 && tag.column == 0 && tag.mark[1] == 0));
}

TEST_CASE("views, spans and vectors are initialised in place", "[init]") {
  const exec_space exec;
  Kokkos::View<float**, Kokkos::LayoutRight> view("view", 5, 6);
  ferry::init::custom(exec, view, place_of{1.0});
  const auto mirror = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace{}, view);
  CHECK(mirror(4, 5) == 405.0f);
  std::vector<std::int32_t> numbers(7, -1);
  ferry::init::custom(exec, numbers, place_of{1.0});
  CHECK(numbers[6] == 600);
  ferry::init::zeros(exec, std::span<std::int32_t>(numbers.data(), 6));
  CHECK(numbers[5] == 0);
  CHECK(numbers[6] == 600);
}

TEST_CASE("nothing can be initialised, and intervals must be ones", "[init]") {
  const exec_space exec;
  ferry::tensor<float, ferry::device_space> none("none", 0, 5);
  ferry::init::uniform(exec, none, 0.0, 1.0, 1);
  ferry::tensor<float, ferry::device_space> table("table", 2, 5);
  const double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_MATCHES(ferry::init::uniform(exec, table, 1.0, 0.5, 1), ferry::invalid_argument,
                       MessageMatches(ContainsSubstring("init::uniform of 'table' [2 x 5]")));
  CHECK_THROWS_AS(ferry::init::uniform(exec, table, nan, 1.0, 1), ferry::invalid_argument);
  CHECK_THROWS_AS(ferry::init::uniform(exec, table, 0.0, nan, 1), ferry::invalid_argument);
  CHECK_THROWS_AS(ferry::init::uniform(exec, table, -infinity, 1.0, 1), ferry::invalid_argument);
  CHECK_THROWS_AS(ferry::init::uniform(exec, table, -1e308, 1e308, 1), ferry::invalid_argument);
  CHECK_THROWS_MATCHES(ferry::init::normal(exec, table, 0.0, -1.0, 1), ferry::invalid_argument,
                       MessageMatches(ContainsSubstring("init::normal of 'table' [2 x 5]")));
  CHECK_THROWS_AS(ferry::init::normal(exec, table, 0.0, nan, 1), ferry::invalid_argument);
  ferry::tensor<float, ferry::device_space> unmade;
  CHECK_THROWS_AS(ferry::init::zeros(exec, unmade), ferry::invalid_argument);
}

TEMPLATE_TEST_CASE("integers stay inside of interval and type", "[init]", std::int8_t, std::uint32_t,
                   std::int64_t) {
  using limits = std::numeric_limits<TestType>;
  const exec_space exec;
  ferry::tensor<TestType, ferry::mapped_space> table("table", 1000, 3);
  ferry::init::normal(exec, table, 0.0, 4.0 * static_cast<double>(limits::max()), 11);
  const auto wide = take(table);
  CHECK(std::count(wide.begin(), wide.end(), limits::max()) > 300);
  CHECK(std::count(wide.begin(), wide.end(), limits::min()) > 300);
  ferry::init::uniform(exec, table, 3.0, 3.0, 11);
  const auto same = take(table);
  CHECK(std::count(same.begin(), same.end(), TestType(3)) == 3000);
  ferry::init::uniform(exec, table, 2.5, 5.5, 11);
  for (const auto value : take(table)) CHECK((value >= 3 && value <= 5));
  CHECK_THROWS_AS(ferry::init::uniform(exec, table, 0.2, 0.8, 11), ferry::invalid_argument);
  CHECK_THROWS_AS(ferry::init::uniform(exec, table, 0.0, 4.0 * static_cast<double>(limits::max()), 11),
                  ferry::invalid_argument);
  CHECK_THROWS_AS(ferry::init::uniform(exec, table, static_cast<double>(limits::min()) * 1.5 - 2.0, 9.0, 11),
                  ferry::invalid_argument);
}

TEMPLATE_LIST_TEST_CASE("constant values in any space", "[init]", element_and_space) {
  using T = at<0, TestType>;
  const exec_space exec;
  ferry::tensor<T, at<1, TestType>> array("array", rows, width);
  ferry::init::constant(exec, array, 3.75);
  const double expected = std::is_integral_v<T> ? 3.0 : 3.75;
  std::size_t wrong = 0;
  for (const auto& value : take(array)) wrong += ferry::convert<double>(value) != expected;
  CHECK(wrong == 0);
  ferry::init::constant(exec, array.rows_between(1, 2), -7);
  const auto got = take(array);
  for (std::size_t i = 0; i < got.size(); ++i)
    wrong += ferry::convert<double>(got[i]) != (i / width == 1 ? -7.0 : expected);
  CHECK(wrong == 0);
}

TEST_CASE("constants that elements can't hold, and elements that are no numbers", "[init]") {
  const exec_space exec;
  ferry::tensor<std::int8_t, ferry::pageable_space> bytes("bytes", 3);
  ferry::init::constant(exec, bytes, -128.9);
  CHECK(take(bytes) == std::vector<std::int8_t>(3, -128));
  ferry::init::constant(exec, bytes, std::uint64_t{127});
  CHECK(take(bytes) == std::vector<std::int8_t>(3, 127));
  CHECK_THROWS_MATCHES(ferry::init::constant(exec, bytes, 128), ferry::invalid_argument,
                       MessageMatches(ContainsSubstring("'bytes' [3]") && ContainsSubstring("128")));
  CHECK_THROWS_AS(ferry::init::constant(exec, bytes, -129.0), ferry::invalid_argument);
  CHECK_THROWS_AS(ferry::init::constant(exec, bytes, std::nan("")), ferry::invalid_argument);
  ferry::tensor<std::uint64_t, ferry::pageable_space> words("words", 2);
  CHECK_THROWS_AS(ferry::init::constant(exec, words, -1), ferry::invalid_argument);
  CHECK_THROWS_AS(ferry::init::constant(exec, words, 0x1p64), ferry::invalid_argument);
  ferry::init::constant(exec, words, ~std::uint64_t{0});
  CHECK(take(words) == std::vector<std::uint64_t>(2, ~std::uint64_t{0}));
  ferry::tensor<ferry::half_t, ferry::pageable_space> narrow("narrow", 1);
  ferry::init::constant(exec, narrow, 1.0 + 0x1p-11 + 0x1p-30);  // once to nearest, not by way of float
  CHECK(static_cast<float>(take(narrow)[0]) == 1.0f + 0x1p-10f);

  ferry::tensor<tagged, ferry::mapped_space> tags("tags", 2, 2);
  ferry::init::constant(exec, tags, tagged{5, 6, {1, 2, 3}});
  for (const auto& tag : take(tags)) CHECK((tag.row == 5 && tag.column == 6 && tag.mark[2] == 3));
}

// The initialisers of torch.nn.init.

using Catch::Matchers::WithinAbs;
using Catch::Matchers::WithinRel;
using ferry::init::fan_mode;
using ferry::init::nonlinearity;

struct moments {
  double mean = 0, deviation = 0, least = 0, most = 0;
};
template <class T>
moments moments_of(const std::vector<T>& values) {
  moments result;
  result.least = result.most = static_cast<double>(values.at(0));
  for (const T value : values) result.mean += static_cast<double>(value) / static_cast<double>(values.size());
  for (const T value : values) {
    const auto x = static_cast<double>(value);
    result.deviation += (x - result.mean) * (x - result.mean) / static_cast<double>(values.size());
    result.least = std::min(result.least, x);
    result.most = std::max(result.most, x);
  }
  result.deviation = std::sqrt(result.deviation);
  return result;
}

/// Phi by the C library, the oracle of the quantile.
double phi(double z) { return 0.5 * std::erfc(-z / std::sqrt(2.0)); }

TEST_CASE("gains are torch's", "[init]") {
  using ferry::init::gain_of;
  CHECK(gain_of(nonlinearity::linear) == 1.0);
  CHECK(gain_of(nonlinearity::sigmoid) == 1.0);
  CHECK(gain_of(nonlinearity::tanh) == 5.0 / 3);
  CHECK(gain_of(nonlinearity::relu) == std::sqrt(2.0));
  CHECK(gain_of(nonlinearity::selu) == 0.75);
  CHECK(gain_of(nonlinearity::leaky_relu) == std::sqrt(2.0 / (1 + 0.01 * 0.01)));
  CHECK(gain_of(nonlinearity::leaky_relu, 0.3) == std::sqrt(2.0 / (1 + 0.3 * 0.3)));
}

TEST_CASE("Xavier and Kaiming values have torch's bounds and deviations", "[init]") {
  const exec_space exec;
  const std::uint64_t seed = generator()();
  const double outputs = 300, inputs = 200;
  ferry::tensor<float, ferry::mapped_space> array("array", 300, 200);
  const auto expect_uniform = [&](double bound) {
    const auto got = moments_of(take(array));
    CHECK(got.most < bound);
    CHECK(got.least >= -bound * (1 + 1e-6));
    CHECK_THAT(got.most, WithinRel(bound, 0.01));
    CHECK_THAT(got.least, WithinRel(-bound, 0.01));
    CHECK_THAT(got.deviation, WithinRel(bound / std::sqrt(3.0), 0.03));
  };
  const auto expect_normal = [&](double deviation) {
    const auto got = moments_of(take(array));
    CHECK_THAT(got.deviation, WithinRel(deviation, 0.03));
    CHECK_THAT(got.mean, WithinAbs(0, 0.03 * deviation));
  };
  ferry::init::xavier_uniform(exec, array, 1.5, seed);
  expect_uniform(1.5 * std::sqrt(6.0 / (inputs + outputs)));
  ferry::init::xavier_normal(exec, array, 1.5, seed);
  expect_normal(1.5 * std::sqrt(2.0 / (inputs + outputs)));
  ferry::init::kaiming_uniform(exec, array, {}, seed);
  expect_uniform(std::sqrt(3.0) * std::sqrt(2.0) / std::sqrt(inputs));
  ferry::init::kaiming_uniform(exec, array, {.a = std::sqrt(5.0), .mode = fan_mode::fan_out}, seed);
  expect_uniform(1 / std::sqrt(outputs));
  ferry::init::kaiming_normal(exec, array, {.after = nonlinearity::relu}, seed);
  expect_normal(std::sqrt(2.0 / inputs));
  ferry::init::kaiming_normal(exec, array, {.mode = fan_mode::fan_out, .after = nonlinearity::tanh}, seed);
  expect_normal(5.0 / 3 / std::sqrt(outputs));
}

TEST_CASE("the receptive field counts into the fans", "[init]") {
  const exec_space exec;
  ferry::tensor<double, ferry::mapped_space> filter("filter", 20, 30, 5, 7);
  ferry::tensor<double, ferry::mapped_space> plain("plain", 20, 30, 5, 7);
  ferry::init::xavier_uniform(exec, filter, 1.0, 7);
  const double bound = std::sqrt(6.0 / (20 * 35 + 30 * 35));
  ferry::init::uniform(exec, plain, -bound, bound, 7);
  CHECK(take(filter) == take(plain));
}

TEST_CASE("the quantile of the normal distribution inverts its distribution function", "[init]") {
  auto random = generator();
  std::uniform_real_distribution<double> any(-37.0, 8.0);
  for (int i = 0; i < 20000; ++i) {
    const double z = any(random);
    if (z > 5) continue;  // there Phi is next to 1 and z is lost in rounding
    const double p = phi(z);
    CAPTURE(z, p);
    REQUIRE_THAT(ferry::random::normal_quantile(p), WithinAbs(z, z > 0 ? 1e-9 : 1e-12));
  }
  CHECK(ferry::random::normal_quantile(0.5) == 0.0);
}

TEST_CASE("truncated normal values lie in the interval and have its moments", "[init][once]") {
  const exec_space exec;
  struct setting {
    double mean, deviation, low, high;
  };
  for (const setting point : {setting{0, 1, -2, 2}, setting{0.5, 0.02, 0.48, 0.6}, setting{0, 1, 3, 9},
                              setting{0, 1, -9, -3}, setting{2, 3, 2, 2}, setting{0, 1, -40, 40}}) {
    ferry::tensor<double, ferry::mapped_space> array("array", 2000, 50);
    ferry::init::trunc_normal(exec, array, point.mean, point.deviation, point.low, point.high, generator()());
    const auto got = moments_of(take(array));
    CAPTURE(point.mean, point.deviation, point.low, point.high);
    CHECK(got.least >= point.low);
    CHECK(got.most <= point.high);
    if (point.low == point.high) continue;
    // The moments by numerical integration over the interval, cut where the density ends.
    double mass = 0, first = 0, second = 0;
    const double begin = std::max(point.low, point.mean - 9 * point.deviation);
    const double end = std::min(point.high, point.mean + 9 * point.deviation);
    for (int i = 0; i < 200000; ++i) {
      const double x = begin + (end - begin) * (i + 0.5) / 200000;
      const double z = (x - point.mean) / point.deviation;
      const double weight = std::exp(-0.5 * z * z);
      mass += weight;
      first += weight * x;
      second += weight * x * x;
    }
    first /= mass;
    const double deviation = std::sqrt(second / mass - first * first);
    CHECK_THAT(got.mean, WithinAbs(first, 6 * deviation / std::sqrt(100000.0)));
    CHECK_THAT(got.deviation, WithinRel(deviation, 0.03));
  }
}

TEMPLATE_TEST_CASE("scaled initial values have the same bits in every space", "[init]", float, double,
                   ferry::half_t) {
  const exec_space exec;
  const Kokkos::DefaultHostExecutionSpace host;
  ferry::tensor<TestType, ferry::device_space> device_array("there", 129, 7);
  ferry::tensor<TestType, ferry::pageable_space> host_array("here", 129, 7);
  for (const double high : {2.0, -1.99}) {  // floats of the second interval are drawn in double
    ferry::init::trunc_normal(exec, device_array, 0, 1, -2, high, 5);
    ferry::init::trunc_normal(host, host_array, 0, 1, -2, high, 5);
    CHECK(take(device_array) == take(host_array));
  }
  ferry::init::kaiming_normal(exec, device_array, {}, 5);
  ferry::init::kaiming_normal(host, host_array, {}, 5);
  CHECK(take(device_array) == take(host_array));
}

TEST_CASE("an interval that holds every number truncates nothing", "[init]") {
  const exec_space exec;
  ferry::tensor<double, ferry::device_space> whole("whole", 129, 7), cut("cut", 129, 7);
  ferry::init::normal(exec, whole, 1, 3, 5);
  ferry::init::trunc_normal(exec, cut, 1, 3, -200, 200, 5);
  CHECK(take(whole) == take(cut));
}

TEST_CASE("initialisers refuse what torch refuses", "[init]") {
  const exec_space exec;
  ferry::tensor<float, ferry::mapped_space> flat("flat", 10);
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 3);
  CHECK_THROWS_AS(ferry::init::xavier_uniform(exec, flat, 1.0, 1), ferry::invalid_argument);
  CHECK_THROWS_AS(ferry::init::kaiming_normal(exec, flat, {}, 1), ferry::invalid_argument);
  CHECK_THROWS_AS(ferry::init::xavier_normal(exec, table, -1.0, 1), ferry::invalid_argument);
  CHECK_THROWS_AS(ferry::init::trunc_normal(exec, table, 0, 0, -1, 1, 1), ferry::invalid_argument);
  CHECK_THROWS_AS(ferry::init::trunc_normal(exec, table, 0, 1, 1, -1, 1), ferry::invalid_argument);
  CHECK_THROWS_AS(ferry::init::trunc_normal(exec, table, 0, 1, 50, 60, 1), ferry::invalid_argument);
}

}  // namespace ferry_test::init_test
