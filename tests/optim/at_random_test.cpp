// SPDX-License-Identifier: Apache-2.0
#include "support/random.hpp"

#include <ferry/ferry.hpp>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

/// Rounding at random to a 16-bit format, against its definition in double.
namespace ferry_test::at_random_test {

namespace {

template <class T>
struct format;
template <>
struct format<ferry::half_t> {
  static constexpr int bits = 10, least = -14, random_bits = 13;
  static constexpr double beyond = 0x1p16;
};
template <>
struct format<ferry::bhalf_t> {
  static constexpr int bits = 7, least = -126, random_bits = 16;
  static constexpr double beyond = 0x1p128;
};

/// The neighbours of a finite value by magnitude, and where it lies between them. Above the largest number
/// both are the nearest number of IEEE 754, which is infinity from half a unit on.
template <class T>
struct between {
  double down, up, fraction;

  explicit between(double value) {
    const double size = std::fabs(value);
    const int exponent = size == 0.0 ? format<T>::least : std::max(std::ilogb(size), format<T>::least);
    const double unit = std::ldexp(1.0, exponent - format<T>::bits);
    down = std::floor(size / unit) * unit;
    fraction = (size - down) / unit;
    up = fraction == 0.0 ? down : down + unit;
    if (up < format<T>::beyond) return;
    if (fraction >= 0.5) down = INFINITY;
    up = down;
    fraction = 0.0;
  }
};

float float_of(std::uint32_t bits) {
  float result;
  std::memcpy(&result, &bits, sizeof result);
  return result;
}

/// Any bit pattern, or one whose exponent the format has.
template <class T>
float any_float(std::mt19937_64& random) {
  const auto bits = static_cast<std::uint32_t>(random());
  if (random() % 4 == 0) return float_of(bits);
  constexpr int lowest = std::is_same_v<T, ferry::half_t> ? 127 - 26 : 0;
  constexpr int highest = std::is_same_v<T, ferry::half_t> ? 127 + 15 : 254;
  const auto exponent =
      static_cast<std::uint32_t>(lowest + static_cast<int>(random() % (highest - lowest + 1)));
  return float_of((bits & 0x807fffffu) | exponent << 23);
}

template <class T>
double rounded(float value, std::uint32_t random) {
  return static_cast<double>(static_cast<float>(T::at_random(value, random)));
}

}  // namespace

TEMPLATE_TEST_CASE("rounding at random gives one of the two neighbours", "[optim][rounding]", ferry::half_t,
                   ferry::bhalf_t) {
  auto random = generator(1000);
  for (int i = 0; i < 300000; ++i) {
    const float value = any_float<TestType>(random);
    const auto bits = static_cast<std::uint32_t>(random());
    const double got = rounded<TestType>(value, bits);
    const auto wide = static_cast<double>(value);
    bool fine;
    if (value != value) {
      fine = got != got;
    } else if (std::fabs(wide) >= format<TestType>::beyond) {
      fine = got == std::copysign(INFINITY, wide);
    } else {
      const between<TestType> neighbours(wide);
      fine = std::signbit(got) == std::signbit(wide) &&
             (std::fabs(got) == neighbours.down || std::fabs(got) == neighbours.up);
    }
    if (!fine) {
      CAPTURE(value, bits, got);
      FAIL("not a neighbour");
    }
  }
}

TEMPLATE_TEST_CASE("a finite value becomes infinite only if the nearest number is", "[optim][rounding]",
                   ferry::half_t, ferry::bhalf_t) {
  auto random = generator(1004);
  constexpr bool half = std::is_same_v<TestType, ferry::half_t>;
  const double largest = half ? 65504.0 : 0x1.fep127, unit = half ? 32.0 : 0x1p120;
  const auto check = [&](float value, double right) {
    for (const auto bits : {std::uint32_t{0}, ~std::uint32_t{0}, static_cast<std::uint32_t>(random())}) {
      CAPTURE(value, bits);
      REQUIRE(rounded<TestType>(value, bits) == right);
      REQUIRE(rounded<TestType>(-value, bits) == -right);
    }
  };
  for (int i = 0; i < 4096; ++i) {  // float has at least 2^12 values there
    check(static_cast<float>(largest + unit * i / 8192), largest);
    check(static_cast<float>(largest + unit * (0.5 + i / 8192.0)), INFINITY);
  }
  // Below the largest number both neighbours are finite.
  for (int i = 0; i < 1000; ++i) {
    const auto value = static_cast<float>(largest - unit * static_cast<double>(1 + random() % 8191) / 8192);
    CAPTURE(value);
    REQUIRE(rounded<TestType>(value, 0u) == largest - unit);
    REQUIRE(rounded<TestType>(value, ~0u) == largest);
  }
}

TEMPLATE_TEST_CASE("numbers of the format stay as they are whatever the random bits", "[optim][rounding]",
                   ferry::half_t, ferry::bhalf_t) {
  auto random = generator(1001);
  for (std::uint32_t bits = 0; bits < 0x10000u; ++bits) {
    const auto exact = TestType::from_bits(static_cast<std::uint16_t>(bits));
    const auto value = static_cast<float>(exact);
    for (const auto r : {std::uint32_t{0}, ~std::uint32_t{0}, std::uint32_t{1} << 31,
                         static_cast<std::uint32_t>(random())}) {
      const auto second = TestType::at_random(value, r);
      const bool same = value == value ? second.bits() == exact.bits()
                                       : static_cast<float>(second) != static_cast<float>(second);
      if (!same) {
        CAPTURE(bits, r, second.bits());
        FAIL("an exact number was rounded");
      }
    }
  }
}

TEMPLATE_TEST_CASE("the share of random bits that round up is the lost fraction", "[optim][rounding]",
                   ferry::half_t, ferry::bhalf_t) {
  auto random = generator(1002);
  constexpr int bits = format<TestType>::random_bits;
  constexpr std::uint32_t patterns = 1u << bits;
  for (int i = 0; i < 150; ++i) {
    float value = any_float<TestType>(random);
    while (!(std::fabs(static_cast<double>(value)) < format<TestType>::beyond))
      value = any_float<TestType>(random);
    const between<TestType> neighbours(static_cast<double>(value));
    std::uint32_t up = 0;
    int changes = 0;
    bool last = false;
    for (std::uint32_t k = 0; k < patterns; ++k) {
      const bool is_up = neighbours.up != neighbours.down &&
                         std::fabs(rounded<TestType>(value, k << (32 - bits))) == neighbours.up;
      changes += k != 0 && is_up != last ? 1 : 0;
      last = is_up;
      up += is_up ? 1u : 0u;
    }
    CAPTURE(value);
    CHECK(changes <= 1);  // monotone in the random bits
    CHECK(std::fabs(static_cast<double>(up) / patterns - neighbours.fraction) <= 1.0 / patterns);
  }
}

namespace {

/// Neither the lowest nor the highest random bits depend on the kind of number: 0 rounds towards zero, and all ones away
/// from it unless less is lost than they can tell.
template <class T>
void directions(float lowest, float highest) {
  auto random = generator(1003);
  std::uniform_real_distribution<float> any(lowest, highest);
  for (int i = 0; i < 1000; ++i) {
    const float value = any(random);
    const between<T> neighbours(static_cast<double>(value));
    CAPTURE(value);
    if (neighbours.fraction < 0x1p-12) continue;
    REQUIRE(rounded<T>(value, 0u) == neighbours.down);
    REQUIRE(rounded<T>(value, ~0u) == neighbours.up);
    REQUIRE(rounded<T>(-value, 0u) == -neighbours.down);
    REQUIRE(rounded<T>(-value, ~0u) == -neighbours.up);
  }
}

}  // namespace

TEST_CASE("small random bits round towards zero", "[optim][rounding]") {
  directions<ferry::half_t>(1.0f, 4.0f);
  directions<ferry::bhalf_t>(1.0f, 4.0f);
  directions<ferry::bhalf_t>(0x1p-128f, 0x1p-126f);
}

TEST_CASE("small random bits round subnormal numbers towards zero", "[optim][rounding]") {
  directions<ferry::half_t>(0x1p-24f, 0x1p-14f);
}

}  // namespace ferry_test::at_random_test
