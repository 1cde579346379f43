// SPDX-License-Identifier: Apache-2.0
#include "reference/half.hpp"
#include "reference/minifloat.hpp"
#include "support/folder.hpp"
#include "support/test.hpp"

#include <fstream>

namespace ferry_test::fp8_test {

using scale_t = ferry::ue8m0_t;

std::uint32_t bits_of(float value) { return std::bit_cast<std::uint32_t>(value); }
float float_of(std::uint32_t bits) { return std::bit_cast<float>(bits); }

/// The formats share these facts, so that each test is written once.
template <class T>
struct facts;

template <>
struct facts<ferry::fp8_e4m3_t> {
  static constexpr const char* name = "float8_e4m3fn";
  static constexpr bool has_sign = true;
  static constexpr auto format = reference::byte_format::e4m3;
};

template <>
struct facts<ferry::fp8_e5m2_t> {
  static constexpr const char* name = "float8_e5m2";
  static constexpr bool has_sign = true;
  static constexpr auto format = reference::byte_format::e5m2;
};

template <>
struct facts<scale_t> {
  static constexpr const char* name = "float8_e8m0fnu";
  static constexpr bool has_sign = false;
  static constexpr auto format = reference::byte_format::e8m0;
};

/// The code of a number by a search among all of them.
template <class T>
std::uint8_t expected(long double value, bool saturates) {
  return reference::byte_of(facts<T>::format, value, saturates);
}

std::uint64_t scrambled(std::uint64_t key) {  // as make_golden_fp8.py
  key += 0x9e3779b97f4a7c15u;
  key = (key ^ (key >> 30)) * 0xbf58476d1ce4e5b9u;
  key = (key ^ (key >> 27)) * 0x94d049bb133111ebu;
  return key ^ (key >> 31);
}

float any_float(std::uint64_t i) { return float_of(static_cast<std::uint32_t>(scrambled(i))); }
float middle_float(std::uint64_t i) {
  const std::uint64_t key = scrambled(i + (1u << 20));
  return float_of((static_cast<std::uint32_t>(key) & 0x807fffffu) |
                  static_cast<std::uint32_t>((key >> 32) % 41u + 107u) << 23);
}
float half_float(std::uint64_t i) { return reference::eigen_half_value(static_cast<std::uint16_t>(i)); }

/// A file of make_golden_fp8.py.
struct golden {
  std::vector<std::uint32_t> values;
  std::vector<std::pair<float, std::uint8_t>> edges;
  std::vector<std::uint64_t> halves, any, middle;

  explicit golden(const std::string& name) {
    std::ifstream file(tests_folder() + "/reference/golden_fp8/" + name + ".txt");
    REQUIRE(file);
    std::string line, word;
    std::getline(file, line);
    std::size_t count = 0;
    while (file >> word >> count)
      for (std::size_t i = 0; i < count && file >> std::hex; ++i) {
        std::string text;
        file >> text >> std::dec;
        const std::uint64_t number = std::stoull(text, nullptr, 16);
        if (word == "values") values.push_back(static_cast<std::uint32_t>(number));
        if (word == "edges")
          edges.emplace_back(float_of(static_cast<std::uint32_t>(number)),
                             static_cast<std::uint8_t>(std::stoul(text.substr(9), nullptr, 16)));
        if (word == "halves") halves.push_back(number);
        if (word == "any") any.push_back(number);
        if (word == "middle") middle.push_back(number);
      }
    REQUIRE((halves.size() == 1 && any.size() == 16 && middle.size() == 16));
  }
};

/// FNV-1a of the codes of 65536 numbers, without those that the file leaves out.
template <class Number, class Encode, class Compares>
std::uint64_t hash_of(std::size_t block, const Number& number, const Encode& encode,
                      const Compares& is_compared) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (std::uint64_t i = block << 16; i < (block + 1) << 16; ++i) {
    const float value = number(i);
    if (is_compared(value)) hash = (hash ^ encode(value)) * 0x100000001b3u;
  }
  return hash;
}

template <class Encode, class Compares>
void check_codes(const golden& file, const Encode& encode, const Compares& is_compared) {
  for (const auto& [value, code] : file.edges) {
    CAPTURE(value, int{code});
    CHECK(int{encode(value)} == int{code});
  }
  CHECK(hash_of(0, half_float, encode, is_compared) == file.halves[0]);
  for (std::size_t block = 0; block < 16; ++block) {
    CAPTURE(block);
    CHECK(hash_of(block, any_float, encode, is_compared) == file.any[block]);
    CHECK(hash_of(block, middle_float, encode, is_compared) == file.middle[block]);
  }
}

/// The default conversion of a number: its unsaturated code, or the largest number with its sign.
template <class T>
std::uint8_t saturated(float value) {
  const auto code = T::unsaturated(value).bits();
  const bool leaves_range = !std::isnan(value) && !std::isfinite(static_cast<float>(T::from_bits(code)));
  if (!leaves_range) return code;
  if constexpr (facts<T>::has_sign)
    return static_cast<std::uint8_t>((std::signbit(value) ? 0x80u : 0u) | T::format::largest);
  else
    return value < 0 ? 0xff : value == 0 ? 0 : 0xfe;
}

TEMPLATE_TEST_CASE("numbers of 8 bits are those of ml_dtypes", "[fp8][golden]", ferry::fp8_e4m3_t,
                   ferry::fp8_e5m2_t, scale_t) {
  const golden file(facts<TestType>::name);
  REQUIRE(file.values.size() == 256);
  for (unsigned code = 0; code < 256; ++code) {
    CAPTURE(code);
    const auto number = TestType::from_bits(static_cast<std::uint8_t>(code));
    const float value = number;
    CHECK(bits_of(value) == file.values[code]);
    const double searched = reference::value_of(facts<TestType>::format, static_cast<std::uint8_t>(code));
    CHECK((std::isnan(value) ? std::isnan(searched) : value == searched));
    if (std::isnan(value)) {
      CHECK(std::isnan(static_cast<float>(TestType(value))));
    } else {
      CHECK(TestType::unsaturated(value).bits() == code);
      if (std::isfinite(value)) CHECK(TestType(value).bits() == code);
    }
  }
  const auto is_compared = [](float value) {
    const bool is_subnormal = value != 0.0f && std::fabs(value) < 0x1p-126f;
    return facts<TestType>::has_sign || !is_subnormal;
  };
  check_codes(
      file, [](float value) { return TestType::unsaturated(value).bits(); }, is_compared);
  std::size_t wrong = 0;
  for (std::uint64_t i = 0; i < 1u << 20; ++i)
    for (const float value : {any_float(i), middle_float(i)})
      wrong += TestType(value).bits() != saturated<TestType>(value);
  for (const auto& [value, code] : file.edges) wrong += TestType(value).bits() != saturated<TestType>(value);
  CHECK(wrong == 0);
}

TEST_CASE("numbers of 4 bits are those of ml_dtypes", "[fp8][golden]") {
  using format = ferry::float4_e2m1fn;
  const golden file("float4_e2m1fn");
  REQUIRE(file.values.size() == 16);
  for (unsigned code = 0; code < 16; ++code) {
    CAPTURE(code);
    const float value = format::value_of(static_cast<std::uint8_t>(code));
    CHECK(bits_of(value) == file.values[code]);
    CHECK(format::bits_of(value) == code);
    CHECK(bits_of(format::value_of(static_cast<std::uint8_t>(code | 0xf0u))) == file.values[code]);
  }
  check_codes(
      file, [](float value) { return format::bits_of(value); },
      [](float value) { return !std::isnan(value); });
  CHECK(format::bits_of(std::numeric_limits<float>::quiet_NaN()) == 0x7);
  CHECK(format::bits_of(-std::numeric_limits<float>::quiet_NaN()) == 0x7);
}

TEMPLATE_TEST_CASE("floats, doubles and integers are rounded to 8 bits once", "[fp8]", ferry::fp8_e4m3_t,
                   ferry::fp8_e5m2_t, scale_t) {
  auto random = generator();
  std::size_t wrong = 0, twice = 0;
  const auto check = [&](auto value) {
    wrong += TestType(value).bits() != expected<TestType>(static_cast<long double>(value), true);
    wrong +=
        TestType::unsaturated(value).bits() != expected<TestType>(static_cast<long double>(value), false);
  };
  for (int i = 0; i < 20000; ++i) check(float_of(static_cast<std::uint32_t>(random())));
  for (int i = 0; i < 10000; ++i) check(std::bit_cast<double>(random()));
  std::uniform_int_distribution<int> exponents(-20, 20);
  std::uniform_real_distribution<double> mantissas(-2.0, 2.0);
  for (int i = 0; i < 40000; ++i) {
    const double value = std::ldexp(mantissas(random), exponents(random));
    check(value);
    check(static_cast<float>(value));
  }
  // Ties, with a bit below float's precision on either side: rounding by way of float gets these wrong.
  for (unsigned code = 0; code + 1u < 0x7bu; ++code) {
    const double low = TestType::from_bits(static_cast<std::uint8_t>(code));
    const double tie = low + (double{TestType::from_bits(static_cast<std::uint8_t>(code + 1u))} - low) / 2.0;
    for (const double value : {tie, std::nextafter(tie, 0.0), std::nextafter(tie, HUGE_VAL),
                               tie * (1.0 + 0x1p-40), tie * (1.0 - 0x1p-40)}) {
      check(value);
      check(-value);
      twice += TestType(static_cast<float>(value)).bits() != expected<TestType>(value, true);
    }
  }
  for (const double edge : {0.0,
                            -0.0,
                            448.0,
                            464.0,
                            464.00000000001,
                            480.0,
                            57344.0,
                            61439.99999999999,
                            61440.0,
                            1e300,
                            -1e300,
                            5e-324,
                            -5e-324,
                            0x1p-10,
                            0x1p-10 * (1 + 0x1p-50),
                            0x1p-17,
                            0x1p-127,
                            0x1.8p-127,
                            0x1.8p127,
                            HUGE_VAL,
                            -HUGE_VAL,
                            std::nan(""),
                            1.0,
                            1.5,
                            3.0})
    check(edge);
  for (int value = -70000; value <= 70000; value += 7) check(value);
  for (int i = 0; i < 10000; ++i) {
    const std::uint64_t bits = random() >> (random() % 64u);
    check(bits);
    check(static_cast<std::int64_t>(~bits));
  }
  CHECK(wrong == 0);
  CHECK(twice > 100);  // else the inputs would prove nothing
}

TEMPLATE_TEST_CASE("a number of 8 bits at random is a neighbour, in the mean the number itself", "[fp8]",
                   ferry::fp8_e4m3_t, ferry::fp8_e5m2_t, scale_t) {
  auto random = generator();
  std::uniform_int_distribution<int> exponents(-18, 8);
  std::uniform_real_distribution<float> mantissas(1.0f, 2.0f);
  for (int i = 0; i < 200; ++i) {
    const float value = std::ldexp(mantissas(random), exponents(random)) *
                        (facts<TestType>::has_sign && i % 2 == 1 ? -1.0f : 1.0f);
    CAPTURE(value);
    if (std::fabs(value) > 440.0f) continue;
    const auto nearest = TestType(value).bits();
    const double first = TestType::at_random(value, 0);
    const double second = TestType::at_random(value, 0xffffffffu);
    CHECK(std::fabs(first) <= std::fabs(value));
    CHECK(std::fabs(second) >= std::fabs(value));
    CHECK((double{TestType::from_bits(nearest)} == first || double{TestType::from_bits(nearest)} == second));
    double sum = 0;
    for (std::uint32_t draw = 0; draw < 4096; ++draw) {
      const double number = TestType::at_random(value, draw << 20);
      if (number != first && number != second) FAIL("another number");
      sum += number;
    }
    CHECK(std::fabs(sum / 4096 - value) <= std::fabs(second - first) / 2048);
  }
  for (const float value : {HUGE_VALF, 0x1.fp127f})
    CHECK(TestType::at_random(value, 0xffffffffu).bits() == TestType::format::largest);
  CHECK(std::isnan(static_cast<float>(TestType::at_random(std::nanf(""), 5))));
}

TEST_CASE("scales are rounded down and up", "[fp8]") {
  auto random = generator();
  std::size_t wrong = 0;
  const auto check = [&](auto value) {
    int floor = -127, ceil = 127;
    while (floor < 127 && std::ldexp(1.0L, floor + 1) <= value) ++floor;
    while (ceil > -127 && std::ldexp(1.0L, ceil - 1) >= value) --ceil;
    wrong += scale_t::floor(value).bits() != floor + 127;
    wrong += scale_t::ceil(value).bits() != ceil + 127;
  };
  for (int i = 0; i < 3000; ++i) {
    check(float_of(static_cast<std::uint32_t>(random()) % 0x7f800000u));
    check(std::bit_cast<double>(random() % 0x7ff0000000000000u));
  }
  for (int exponent = -150; exponent <= 128; ++exponent)
    for (const double value : {std::ldexp(1.0, exponent), std::ldexp(1.0 + 0x1p-50, exponent),
                               std::ldexp(1.0 - 0x1p-50, exponent)}) {
      check(value);
      if (exponent < 128) check(static_cast<float>(value));
    }
  check(0.0f);
  check(HUGE_VALF);
  check(7);
  CHECK(wrong == 0);
  for (const float value : {-1.0f, -0x1p-149f, -HUGE_VALF, std::nanf("")}) {
    CHECK(scale_t::floor(value).bits() == 0xff);
    CHECK(scale_t::ceil(value).bits() == 0xff);
    CHECK(scale_t(value).bits() == 0xff);
  }
}

TEST_CASE("pairs of 4-bit numbers keep the first one in the lower half", "[fp8]") {
  STATIC_CHECK(ferry::fp4_e2m1_pair_t(1.0f, -6.0f).bits() == 0xf2);
  STATIC_CHECK(ferry::fp4_e2m1_pair_t(0.25, 0.75).bits() == 0x20);
  STATIC_CHECK(ferry::fp4_e2m1_pair_t(5.0, 1e300).bits() == 0x76);
  STATIC_CHECK(ferry::fp4_e2m1_pair_t(5.0 + 0x1p-40, -0.25 - 0x1p-50).bits() == 0x97);
  STATIC_CHECK(ferry::fp4_e2m1_pair_t::from_bits(0xa3).first() == 1.5f);
  STATIC_CHECK(ferry::fp4_e2m1_pair_t::from_bits(0xa3).second() == -1.0f);
  STATIC_CHECK(std::is_trivially_copyable_v<ferry::fp4_e2m1_pair_t> && sizeof(ferry::fp4_e2m1_pair_t) == 1);
  auto random = generator();
  std::size_t wrong = 0;
  for (int i = 0; i < 20000; ++i) {
    const float first = float_of(static_cast<std::uint32_t>(random()));
    const double second = std::ldexp(static_cast<double>(static_cast<std::int64_t>(random())), -62);
    if (std::isnan(first)) continue;
    const auto code = [](double value) {
      return std::min(reference::nearest_code(reference::e2m1_layout, std::fabs(value)), 7u) |
             (std::signbit(value) ? 8u : 0u);
    };
    const ferry::fp4_e2m1_pair_t pair(double{first}, second);
    wrong += pair.bits() != (code(first) | code(second) << 4);
    for (const auto draw : {0u, 0xffffffffu}) {
      const double number = ferry::float4_e2m1fn::value_of(
          ferry::float4_e2m1fn::bits_at_random(static_cast<float>(second), draw));
      wrong += draw == 0u ? std::fabs(number) > std::fabs(static_cast<float>(second))
                          : std::fabs(number) < std::fabs(static_cast<float>(second));
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("numbers of 8 bits convert at compile time and are no numbers to compute with", "[fp8]") {
  STATIC_CHECK(ferry::fp8_e4m3_t(1.0f).bits() == 0x38);
  STATIC_CHECK(ferry::fp8_e5m2_t(-2.0).bits() == 0xc0);
  STATIC_CHECK(scale_t(1).bits() == 127);
  STATIC_CHECK(ferry::fp8_e4m3_t(1e9).bits() == 0x7e);
  STATIC_CHECK(ferry::fp8_e4m3_t::unsaturated(1e9).bits() == 0x7f);
  STATIC_CHECK(std::is_trivially_copyable_v<ferry::fp8_e4m3_t> && sizeof(ferry::fp8_e4m3_t) == 1);
  STATIC_CHECK(ferry::ConvertibleElement<ferry::fp8_e4m3_t, const ferry::half_t>);
  STATIC_CHECK(ferry::ConvertibleElement<double, ferry::fp8_e5m2_t>);
  STATIC_CHECK(ferry::ConvertibleElement<ferry::fp8_e4m3_t, ferry::fp8_e5m2_t>);
  STATIC_CHECK_FALSE(ferry::ConvertibleElement<float, ferry::fp4_e2m1_pair_t>);
  STATIC_CHECK_FALSE(ferry::NumberElement<ferry::fp8_e4m3_t>);
  STATIC_CHECK_FALSE(ferry::FloatingElement<ferry::fp8_e5m2_t>);
  CHECK(ferry::convert<ferry::bhalf_t>(ferry::fp8_e4m3_t(0.333f)).bits() ==
        ferry::bhalf_t(static_cast<float>(ferry::fp8_e4m3_t(0.333f))).bits());
  CHECK(ferry::convert<std::int32_t>(ferry::fp8_e5m2_t(-7.0f)) == -7);
  // Through float this would be a tie and go down.
  CHECK(ferry::convert<ferry::fp8_e4m3_t>(1.0 + 0x1p-4 + 0x1p-40).bits() == 0x39);
  CHECK(ferry::detail::is_nan(ferry::fp8_e4m3_t::from_bits(0xff)));
  CHECK_FALSE(ferry::detail::is_finite(ferry::fp8_e5m2_t::from_bits(0x7c)));
}

/// Converts on the execution space, which may have instructions of its own.
template <class T>
struct convert_elements {
  const float* source;
  T* target;
  T* drawn;
  float* back;
  KOKKOS_FUNCTION void operator()(int i) const {
    target[i] = T(source[i]);
    drawn[i] = T::at_random(source[i], static_cast<std::uint32_t>(i) * 2654435761u);
    back[i] = static_cast<float>(T::from_bits(static_cast<std::uint8_t>(i)));
  }
};

TEMPLATE_TEST_CASE("kernels convert to 8 bits as the host does", "[fp8]", ferry::fp8_e4m3_t,
                   ferry::fp8_e5m2_t, scale_t) {
  const golden file(facts<TestType>::name);
  std::vector<float> inputs;
  for (const auto& [value, code] : file.edges) inputs.push_back(value);
  for (std::uint64_t i = 0; i < 60000; ++i) {
    inputs.push_back(any_float(i));
    inputs.push_back(middle_float(i));
  }
  const auto source = make<ferry::device_space>("inputs", inputs);
  ferry::tensor<TestType, ferry::device_space> target("numbers", inputs.size());
  ferry::tensor<TestType, ferry::device_space> drawn("drawn", inputs.size());
  ferry::tensor<float, ferry::device_space> back("floats", inputs.size());
  Kokkos::parallel_for("ferry_test::convert",
                       Kokkos::RangePolicy<exec_space>(0, static_cast<int>(inputs.size())),
                       convert_elements<TestType>{source.data(), target.data(), drawn.data(), back.data()});
  const auto numbers = take(target);
  const auto draws = take(drawn);
  const auto floats = take(back);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    wrong += numbers[i].bits() != TestType(inputs[i]).bits();
    wrong +=
        draws[i].bits() != TestType::at_random(inputs[i], static_cast<std::uint32_t>(i) * 2654435761u).bits();
    wrong += bits_of(floats[i]) != file.values[i % 256];
  }
  CHECK(wrong == 0);
}

}  // namespace ferry_test::fp8_test
