// SPDX-License-Identifier: Apache-2.0
#include <ferry/ferry.hpp>
#include <ferry/int8.hpp>

#include "reference/half.hpp"
#include "reference/random.hpp"

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#ifndef __FAST_MATH__
#error "this source is to be compiled with -ffast-math"
#endif

/// Promises to a program that is compiled and linked with -Ofast -ffast-math. Nothing here may ask isnan itself:
/// values are compared by their bits. The oracles are compiled without the flag.
namespace {

namespace optim = ferry::optim;
using exec_space = Kokkos::DefaultHostExecutionSpace;
using ferry::pageable_space;

template <class T>
using bits_type = std::conditional_t<sizeof(T) == 2, std::uint16_t,
                                     std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>;

template <class T>
bits_type<T> bits(const T& value) {
  bits_type<T> result;
  std::memcpy(&result, &value, sizeof value);
  return result;
}
template <class T>
T of_bits(bits_type<T> bits) {
  T result;
  std::memcpy(static_cast<void*>(&result), &bits, sizeof result);
  return result;
}

template <class T>
struct bad_values {
  bits_type<T> nan, other_nan, infinity, negative_infinity;
};
template <class T>
bad_values<T> bad_of();
template <>
bad_values<double> bad_of() {
  return {0x7ff8000000000000u, 0xfff0000000000001u, 0x7ff0000000000000u, 0xfff0000000000000u};
}
template <>
bad_values<float> bad_of() {
  return {0x7fc00000u, 0xff800001u, 0x7f800000u, 0xff800000u};
}
template <>
bad_values<ferry::half_t> bad_of() {
  return {0x7e00u, 0xfc01u, 0x7c00u, 0xfc00u};
}
template <>
bad_values<ferry::bhalf_t> bad_of() {
  return {0x7fc0u, 0xff81u, 0x7f80u, 0xff80u};
}

constexpr std::size_t rows = 7, width = 19;

template <class T>
ferry::tensor<T, pageable_space> gradients_with(std::size_t place, bits_type<T> bad) {
  ferry::tensor<T, pageable_space> gradients("gradients", rows, width);
  for (std::size_t i = 0; i < rows * width; ++i) gradients.data()[i] = T(0.25f + static_cast<float>(i % 5));
  gradients.data()[place] = of_bits<T>(bad);
  return gradients;
}

}  // namespace

TEMPLATE_TEST_CASE("bits tell what is finite", "[flags]", float, double, ferry::half_t, ferry::bhalf_t) {
  using ferry::detail::is_finite;
  using ferry::detail::is_nan;
  using ferry::detail::is_negative;
  const auto bad = bad_of<TestType>();
  for (const auto nan : {bad.nan, bad.other_nan}) {
    CHECK_FALSE(is_finite(of_bits<TestType>(nan)));
    CHECK(is_nan(of_bits<TestType>(nan)));
  }
  for (const auto infinity : {bad.infinity, bad.negative_infinity}) {
    CHECK_FALSE(is_finite(of_bits<TestType>(infinity)));
    CHECK_FALSE(is_nan(of_bits<TestType>(infinity)));
    CHECK(is_negative(of_bits<TestType>(infinity)) == (infinity == bad.negative_infinity));
  }
  for (const float good : {0.0f, -0.0f, 1.0f, -3.5f, 60000.0f}) {
    CHECK(is_finite(TestType(good)));
    CHECK_FALSE(is_nan(TestType(good)));
    CHECK(is_negative(TestType(good)) == (bits(good) >> 31 != 0u));
  }
  CHECK(is_finite(of_bits<TestType>(static_cast<bits_type<TestType>>(bad.infinity - 1u))));  // the largest
  CHECK(is_finite(std::numeric_limits<std::int64_t>::min()));
}

TEMPLATE_TEST_CASE("nonfinite::reject and skip see infinities and NaN", "[flags]", float, double,
                   ferry::half_t, ferry::bhalf_t) {
  using weight = std::conditional_t<std::is_same_v<TestType, double>, double, float>;
  const exec_space exec;
  const optim::sgd rule{.lr = 0.5};
  std::vector<std::int64_t> indices(rows);
  for (std::size_t i = 0; i < rows; ++i) indices[i] = static_cast<std::int64_t>(rows - 1 - i);
  const auto bad = bad_of<TestType>();
  const struct {
    bits_type<TestType> value;
    const char* name;
  } cases[] = {
      {bad.nan, "nan"}, {bad.other_nan, "nan"}, {bad.infinity, "inf"}, {bad.negative_infinity, "-inf"}};
  for (const auto& sample : cases) {
    for (const std::size_t place : {std::size_t{0}, rows * width / 2, rows * width - 1}) {
      CAPTURE(sample.name, place);
      ferry::tensor<weight, pageable_space> table("weights", rows, width);
      for (std::size_t i = 0; i < rows * width; ++i) table.data()[i] = weight(1) + static_cast<weight>(i);
      auto state = optim::make_state(rule, table);
      const auto gradients = gradients_with<TestType>(place, sample.value);
      std::string message;
      try {
        ferry::step(exec, rule, table, state, indices, gradients, ferry::nonfinite::reject{}).wait();
      } catch (const ferry::invalid_argument& refused) {
        message = refused.what();
      }
      CAPTURE(message);
      CHECK(message.find("'gradients'") != std::string::npos);
      const std::string value = std::string(" ") + sample.name;
      CHECK(message.find(value) != std::string::npos);
      CHECK(state.skipped() == 0);
      ferry::step(exec, rule, table, state, indices, gradients, ferry::nonfinite::skip{}).wait();
      CHECK(state.skipped() == 1);
      CHECK(state.steps() == 0);
      for (std::size_t i = 0; i < rows * width; ++i)
        REQUIRE(table.data()[i] == weight(1) + static_cast<weight>(i));
    }
  }
  // And what is finite steps.
  ferry::tensor<weight, pageable_space> table("weights", rows, width);
  ferry::init::zeros(exec, table);
  auto state = optim::make_state(rule, table);
  const auto gradients = gradients_with<TestType>(0, bits(TestType(2.0f)));
  ferry::step(exec, rule, table, state, indices, gradients, ferry::nonfinite::reject{}).wait();
  CHECK(table.data()[(rows - 1) * width] == weight(-1));
}

TEST_CASE("16-bit formats convert as without the flag", "[flags]") {
  namespace oracle = ferry_test::reference;
  for (std::uint32_t code = 0; code <= 0xffffu; ++code) {
    const auto half_bits = static_cast<std::uint16_t>(code);
    REQUIRE(bits(static_cast<float>(ferry::half_t::from_bits(half_bits))) ==
            bits(oracle::eigen_half_value(half_bits)));
    REQUIRE(bits(static_cast<float>(ferry::bhalf_t::from_bits(half_bits))) ==
            bits(oracle::eigen_bhalf_value(half_bits)));
  }
  std::mt19937_64 random(11);
  for (int i = 0; i < 200000; ++i) {
    // Normal doubles around both formats' ranges, half of them next to a tie.
    const auto exponent = std::uint64_t{1023 - 24 + random() % 42} << 52;
    auto mantissa = random() & 0x000fffffffffffffull;
    if (i % 2 == 0) mantissa = (mantissa & ~((std::uint64_t{1} << 40) - 1)) + random() % 3 - 1;
    const double value =
        of_bits<double>((random() & 1u) << 63 | exponent | (mantissa & 0x000fffffffffffffull));
    const auto single = static_cast<float>(value);
    CAPTURE(value);
    REQUIRE(ferry::half_t(value).bits() == oracle::half_bits_once(value));
    REQUIRE(ferry::bhalf_t(value).bits() == oracle::bhalf_bits_once(value));
    REQUIRE(ferry::half_t(single).bits() == oracle::eigen_half_bits(single));
    REQUIRE(ferry::bhalf_t(single).bits() == oracle::eigen_bhalf_bits(single));
  }
  const auto bad = bad_of<double>();
  CHECK(ferry::half_t(of_bits<double>(bad.infinity)).bits() == 0x7c00u);
  CHECK(ferry::half_t(of_bits<double>(bad.negative_infinity)).bits() == 0xfc00u);
  CHECK(ferry::bhalf_t(of_bits<double>(bad.infinity)).bits() == 0x7f80u);
  for (const auto nan : {bad.nan, bad.other_nan}) {
    CHECK((ferry::half_t(of_bits<double>(nan)).bits() & 0x7fffu) > 0x7c00u);
    CHECK((ferry::bhalf_t(of_bits<double>(nan)).bits() & 0x7fffu) > 0x7f80u);
  }
  CHECK(ferry::half_t(1e300).bits() == 0x7c00u);
  CHECK(ferry::bhalf_t(-1e300).bits() == 0xff80u);
}

TEST_CASE("rounding at random takes the neighbours in proportion", "[flags]") {
  // 1 + 3/8 of the distance to the next number: exactly 3 of 8 equally spread words go up.
  const float half_value = 1.0f + 0.375f * 0x1p-10f, bhalf_value = 1.0f + 0.375f * 0x1p-7f;
  int half_up = 0, bhalf_up = 0;
  for (std::uint32_t word = 0; word < 8; ++word) {
    const auto half = ferry::half_t::at_random(half_value, word << 29).bits();
    const auto bhalf = ferry::bhalf_t::at_random(bhalf_value, word << 29).bits();
    REQUIRE((half == 0x3c00u || half == 0x3c01u));
    REQUIRE((bhalf == 0x3f80u || bhalf == 0x3f81u));
    half_up += half == 0x3c01u ? 1 : 0;
    bhalf_up += bhalf == 0x3f81u ? 1 : 0;
  }
  CHECK(half_up == 3);
  CHECK(bhalf_up == 3);
}

TEST_CASE("8-bit rows keep what is not finite", "[flags]") {
  const exec_space exec;
  constexpr std::size_t count = 6, wide = 37;
  ferry::tensor<float, pageable_space> source("from", count, wide), back("back", count, wide);
  const auto bad = bad_of<float>();
  std::mt19937_64 random(12);
  for (std::size_t i = 0; i < count * wide; ++i)
    source.data()[i] = static_cast<float>(static_cast<double>(random() % 20001) - 10000.0) / 64.0f;
  const bits_type<float> spoilt[] = {bad.nan, bad.other_nan, bad.infinity, bad.negative_infinity};
  for (std::size_t row = 0; row < 4; ++row)
    source.data()[row * wide + row * 12] = of_bits<float>(spoilt[row]);
  // A row whose least element is -0.
  for (std::size_t c = 0; c < wide; ++c) source.data()[5 * wide + c] = c == 3 ? -0.0f : 2.0f;
  ferry::rowwise_int8_tensor<pageable_space> table("codes", count, wide);
  ferry::quantize(exec, source, table).wait();
  ferry::dequantize(exec, table, back).wait();
  for (std::size_t row = 0; row < 4; ++row)
    for (std::size_t c = 0; c < wide; ++c) {
      CAPTURE(row, c);
      REQUIRE((bits(back.data()[row * wide + c]) & 0x7fffffffu) > 0x7f800000u);
    }
  float least = source.data()[4 * wide], most = least;
  for (std::size_t c = 0; c < wide; ++c) {
    least = std::min(least, source.data()[4 * wide + c]);
    most = std::max(most, source.data()[4 * wide + c]);
  }
  for (std::size_t c = 0; c < wide; ++c) {
    const std::size_t element = 4 * wide + c;
    CHECK(std::abs(back.data()[element] - source.data()[element]) <= 0.501f * (most - least) / 255.0f);
    CHECK(bits(back.data()[5 * wide + c]) == bits(c == 3 ? 0.0f : 2.0f));
  }
}

TEST_CASE("uniform numbers are the same, normal ones to the last places", "[flags]") {
  const exec_space exec;
  ferry::tensor<double, pageable_space> drawn("drawn", 5000);
  ferry::init::uniform(exec, drawn, 0.0, 1.0, 7);
  for (std::size_t i = 0; i < drawn.size(); ++i)
    REQUIRE(bits(drawn.data()[i]) == bits(ferry_test::reference::uniform_unit(7, i)));
  ferry::init::normal(exec, drawn, 0.0, 1.0, 7);
  for (std::size_t i = 0; i < drawn.size(); ++i)
    REQUIRE(std::abs(drawn.data()[i] - ferry_test::reference::standard_normal(7, i)) < 1e-13);
  ferry::tensor<float, pageable_space> floats("floats", 5000);
  ferry::init::uniform(exec, floats, -1.0, 3.0, 7);
  for (std::size_t i = 0; i < floats.size(); ++i)
    REQUIRE(bits(floats.data()[i]) ==
            bits(static_cast<float>(1.0 + 2.0 * ferry_test::reference::signed_unit(7, i))));
  ferry::init::normal(exec, floats, 0.0, 1.0, 7);
  for (std::size_t i = 0; i < floats.size(); ++i)
    REQUIRE(std::abs(floats.data()[i] - ferry_test::reference::normal_of_word(7, i)) < 1e-5);
}

TEST_CASE("a NaN among the options is refused", "[flags]") {
  const double nan = of_bits<double>(bad_of<double>().nan);
  const double infinity = of_bits<double>(bad_of<double>().infinity);
  const exec_space exec;
  ferry::tensor<float, pageable_space> table("weights", 2, 3);
  CHECK_THROWS_AS(optim::make_state(optim::sgd{.lr = nan}, table), ferry::invalid_argument);
  CHECK_THROWS_AS(optim::make_state(optim::adam{.betas = {nan, 0.9}}, table), ferry::invalid_argument);
  CHECK_THROWS_AS(ferry::init::uniform(exec, table, nan, 1.0, 1), ferry::invalid_argument);
  CHECK_THROWS_AS(ferry::init::uniform(exec, table, 0.0, infinity, 1), ferry::invalid_argument);
  CHECK_THROWS_AS(ferry::init::normal(exec, table, 0.0, nan, 1), ferry::invalid_argument);
  ferry::machine_profile profile;
  profile.call_us = nan;
  CHECK_THROWS_AS(ferry::use_profile(exec, profile), ferry::invalid_argument);
  profile.call_us = infinity;
  CHECK_THROWS_AS(ferry::use_profile(exec, profile), ferry::invalid_argument);
}

TEST_CASE("a small change is not taken for none, nor a lost one for a change", "[flags]") {
  const auto lost = [](auto weight, auto change) { return optim::rounds_away(change, weight); };
  for (const float weight : {1.0f, -1.0f, 0.75f, 3e20f}) {
    CAPTURE(weight);
    // 4096 changes of this size move the weight by its last place.
    CHECK_FALSE(lost(weight, std::abs(weight) * 0x1p-35f));
    CHECK(lost(weight, std::abs(weight) * 0x1p-38f));
    CHECK(lost(weight, -std::abs(weight) * 0x1p-38f));
  }
  CHECK_FALSE(lost(1.0, 0x1p-64));
  CHECK(lost(1.0, 0x1p-67));
  CHECK(lost(0.0, 0.0));
  CHECK_FALSE(lost(0.0, 1e-30));
}
