// SPDX-License-Identifier: Apache-2.0
#include <ferry/ferry.hpp>
#include <ferry/rows/init_scaled.hpp>

#include "support/arrays.hpp"
#include "support/random.hpp"

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

/// The initialisers of torch.nn.init.
namespace ferry_test::init_scaled_test {

namespace {

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

}  // namespace

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

TEST_CASE("truncated normal values lie in the interval and have its moments", "[init]") {
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

}  // namespace ferry_test::init_scaled_test
