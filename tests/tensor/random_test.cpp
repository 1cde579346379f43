// SPDX-License-Identifier: Apache-2.0
#include <ferry/rows/detail/fill_elements.hpp>

#include "reference/random.hpp"
#include "support/arrays.hpp"
#include "support/random.hpp"

#include <catch2/matchers/catch_matchers_floating_point.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ferry_test::random_test {

/// Of a table of doubles.
double normal(std::uint64_t seed, std::uint64_t position, double mean, double deviation) {
  return ferry::detail::normal_generator<double>(mean, deviation, seed)(0, 0,
                                                                        static_cast<std::int64_t>(position));
}

bool same(const ferry::random::philox_block& block, std::uint32_t a, std::uint32_t b, std::uint32_t c,
          std::uint32_t d) {
  return block.word[0] == a && block.word[1] == b && block.word[2] == c && block.word[3] == d;
}

/// The largest distance between the distribution of a sample and `cdf` (Kolmogorov and Smirnov), times
/// sqrt(n).
template <class Cdf>
double distance(std::vector<double> sample, Cdf cdf) {
  std::sort(sample.begin(), sample.end());
  const auto n = static_cast<double>(sample.size());
  double largest = 0.0;
  for (std::size_t i = 0; i < sample.size(); ++i) {
    const double expected = cdf(sample[i]);
    largest = std::max({largest, std::fabs(static_cast<double>(i + 1) / n - expected),
                        std::fabs(static_cast<double>(i) / n - expected)});
  }
  return largest * std::sqrt(n);
}

struct moments {
  double mean = 0, variance = 0, skew = 0, kurtosis = 0;
  explicit moments(const std::vector<double>& sample) {
    const auto n = static_cast<double>(sample.size());
    for (const double x : sample) mean += x / n;
    for (const double x : sample) variance += (x - mean) * (x - mean) / n;
    for (const double x : sample) skew += std::pow((x - mean) / std::sqrt(variance), 3) / n;
    for (const double x : sample) kurtosis += std::pow((x - mean) / std::sqrt(variance), 4) / n;
  }
};

constexpr std::size_t many = 200000;

template <class Draw>
std::vector<double> sample_of(Draw draw) {
  std::vector<double> sample(many);
  for (std::size_t i = 0; i < many; ++i) sample[i] = draw(i);
  return sample;
}

/// Correlation of neighbours at a distance.
double correlation(const std::vector<double>& sample, std::size_t lag) {
  const moments shape(sample);
  double sum = 0.0;
  for (std::size_t i = lag; i < sample.size(); ++i)
    sum += (sample[i] - shape.mean) * (sample[i - lag] - shape.mean);
  return sum / static_cast<double>(sample.size() - lag) / shape.variance;
}

TEST_CASE("philox gives the known answers of its authors", "[random]") {
  using ferry::random::philox;
  CHECK(same(philox({{0, 0, 0, 0}}, 0), 0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u));
  const std::uint32_t ones = 0xffffffffu;
  CHECK(same(philox({{ones, ones, ones, ones}}, ~std::uint64_t{0}), 0x408f276du, 0x41c83b0eu, 0xa20bc7c6u,
             0x6d5451fdu));
  CHECK(same(philox({{0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u}}, 0x299f31d0a4093822ull),
             0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u));
  STATIC_CHECK(philox({{0, 0, 0, 0}}, 0).word[0] == 0x6627e8d5u);
}

TEST_CASE("philox equals the plain form for any counter and key", "[random]") {
  auto random = generator();
  for (int i = 0; i < 1000; ++i) {
    const auto a = random(), b = random(), seed = random();
    const auto word = [](std::uint64_t bits) { return static_cast<std::uint32_t>(bits); };
    const auto expected = reference::philox4x32({word(a), word(a >> 32), word(b), word(b >> 32)},
                                                {word(seed), word(seed >> 32)});
    REQUIRE(same(ferry::random::philox({{word(a), word(a >> 32), word(b), word(b >> 32)}}, seed), expected[0],
                 expected[1], expected[2], expected[3]));
  }
}

TEST_CASE("draws are what the standard library's functions make of the same bits", "[random]") {
  auto random = generator();
  for (int i = 0; i < 20000; ++i) {
    const std::uint64_t seed = random(), position = random() >> (random() % 64u);
    REQUIRE(ferry::random::uniform(seed, position, 0.0, 1.0) == reference::uniform_unit(seed, position));
    REQUIRE_THAT(ferry::random::uniform(seed, position, -3.0, 5.0),
                 Catch::Matchers::WithinAbs(-3.0 + 8.0 * reference::uniform_unit(seed, position), 1e-14));
    const double expected = reference::standard_normal(seed, position);
    REQUIRE_THAT(normal(seed, position, 0.0, 1.0), Catch::Matchers::WithinAbs(expected, 4e-15 * 9.0));
    REQUIRE_THAT(normal(seed, position, 10.0, 0.25),
                 Catch::Matchers::WithinAbs(10.0 + 0.25 * expected, 1e-13));
  }
}

TEST_CASE("the logarithm is accurate for every normal number", "[random]") {
  auto random = generator();
  std::uniform_int_distribution<int> exponents(-1022, -1);
  for (int i = 0; i < 100000; ++i) {
    const double u = std::ldexp(static_cast<double>(random() >> 11), -53);
    const double x = std::ldexp(1.0 + u, exponents(random));
    REQUIRE_THAT(ferry::random::detail::log_of(x), Catch::Matchers::WithinRel(std::log(x), 1e-14) ||
                                                       Catch::Matchers::WithinAbs(std::log(x), 1e-15));
  }
  CHECK(ferry::random::detail::log_of(1.0) == 0.0);
}

TEST_CASE("seeds, positions and kinds of draws are independent of each other", "[random]") {
  auto random = generator();
  const std::uint64_t seed = random();
  double neighbours = 0.0, kinds = 0.0;
  for (std::size_t i = 0; i < many; ++i) {
    const double value = ferry::random::uniform(seed, i, -1.0, 1.0);
    neighbours += value * ferry::random::uniform(seed + 1, i, -1.0, 1.0);
    kinds += value * normal(seed, i, 0.0, 1.0);
  }
  const double error = 6.0 * std::sqrt(static_cast<double>(many));
  CHECK(std::fabs(neighbours) < error / 3.0);
  CHECK(std::fabs(kinds) < error / std::sqrt(3.0));
  // The upper halves of seed and position count.
  CHECK(ferry::random::uniform(seed, 5, 0.0, 1.0) !=
        ferry::random::uniform(seed ^ (1ull << 63), 5, 0.0, 1.0));
  CHECK(ferry::random::uniform(seed, 5, 0.0, 1.0) !=
        ferry::random::uniform(seed, 5 + (1ull << 32), 0.0, 1.0));
}

}  // namespace ferry_test::random_test
