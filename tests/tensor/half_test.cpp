// SPDX-License-Identifier: Apache-2.0
#include "reference/half.hpp"
#include "support/test.hpp"

#include <ferry/tensor/detail/numeric.hpp>

namespace ferry_test::half_test {

/// The facts of both formats, so that each test is written once.
template <class T>
struct format;

template <>
struct format<ferry::half_t> {
  static std::uint16_t eigen_bits(float value) { return reference::eigen_half_bits(value); }
  static float eigen_value(std::uint16_t bits) { return reference::eigen_half_value(bits); }
  static std::uint16_t once(long double value) { return reference::half_bits_once(value); }
  static constexpr std::uint16_t infinity = 0x7c00;
};

template <>
struct format<ferry::bhalf_t> {
  static std::uint16_t eigen_bits(float value) { return reference::eigen_bhalf_bits(value); }
  static float eigen_value(std::uint16_t bits) { return reference::eigen_bhalf_value(bits); }
  static std::uint16_t once(long double value) { return reference::bhalf_bits_once(value); }
  static constexpr std::uint16_t infinity = 0x7f80;
};

template <class T>
bool is_nan(std::uint16_t bits) {
  return (bits & 0x7fffu) > format<T>::infinity;
}

/// Numbers of [0, infinity), by their bits.
template <class T>
T positive(std::uint16_t bits) {
  return T::from_bits(bits);
}

TEMPLATE_TEST_CASE("every bit pattern of a 16-bit number survives the way to float and back", "[half]",
                   ferry::half_t, ferry::bhalf_t) {
  std::size_t wrong = 0;
  for (std::uint32_t pattern = 0; pattern <= 0xffffu; ++pattern) {
    const auto bits = static_cast<std::uint16_t>(pattern);
    const float value = TestType::from_bits(bits);
    if (is_nan<TestType>(bits)) {
      wrong += !std::isnan(value) || !is_nan<TestType>(TestType(value).bits());
      wrong += std::signbit(value) != ((bits & 0x8000u) != 0);
    } else {
      wrong += std::bit_cast<std::uint32_t>(value) !=
               std::bit_cast<std::uint32_t>(format<TestType>::eigen_value(bits));
      wrong += TestType(value).bits() != bits;
      wrong += TestType(static_cast<double>(value)).bits() != bits;
    }
  }
  CHECK(wrong == 0);
}

TEMPLATE_TEST_CASE("floats are rounded to 16 bits as Eigen rounds them", "[half]", ferry::half_t,
                   ferry::bhalf_t) {
  auto random = generator();
  std::size_t wrong = 0;
  const auto check = [&](float value) {
    const auto result = TestType(value).bits();
    if (std::isnan(value))
      wrong += !is_nan<TestType>(result);
    else
      wrong += result != format<TestType>::eigen_bits(value) || result != format<TestType>::once(value);
  };
  for (int i = 0; i < 1000000; ++i) check(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
  // Every tie, and the floats next to it.
  for (std::uint16_t bits = 0; bits < format<TestType>::infinity; ++bits) {
    const float low = positive<TestType>(bits);
    const auto above = static_cast<std::uint16_t>(bits + 1u);
    const float high = above == format<TestType>::infinity ? std::ldexp(1.0f, std::ilogb(low)) * 2.0f
                                                           : positive<TestType>(above);
    const float tie = std::isinf(high) ? std::numeric_limits<float>::max() : low + (high - low) / 2.0f;
    for (const float value : {tie, std::nextafterf(tie, 0.0f), std::nextafterf(tie, HUGE_VALF)}) {
      check(value);
      check(-value);
    }
  }
  for (const float edge : {0.0f, -0.0f, HUGE_VALF, -HUGE_VALF, std::numeric_limits<float>::max(),
                           std::numeric_limits<float>::denorm_min(), std::numeric_limits<float>::quiet_NaN(),
                           65504.0f, 65519.996f, 65520.0f, 0x1p-24f, 0x1p-25f, 0x1.000002p-25f, 0x1p-14f})
    check(edge);
  CHECK(wrong == 0);
}

TEMPLATE_TEST_CASE("doubles are rounded to 16 bits once", "[half]", ferry::half_t, ferry::bhalf_t) {
  auto random = generator();
  std::size_t wrong = 0;
  std::size_t twice = 0;
  const auto check = [&](double value) {
    const auto result = TestType(value).bits();
    const auto expected = format<TestType>::once(value);
    if (std::isnan(value)) {
      wrong += !is_nan<TestType>(result);
    } else {
      wrong += result != expected;
      twice += TestType(static_cast<float>(value)).bits() != expected;
    }
  };
  for (int i = 0; i < 200000; ++i) check(std::bit_cast<double>(random()));
  std::uniform_int_distribution<int> exponents(-160, 140);
  std::uniform_real_distribution<double> mantissas(1.0, 2.0);
  for (int i = 0; i < 200000; ++i) check(std::ldexp(mantissas(random), exponents(random)));
  // Ties, with a bit below float's precision on either side: rounding by way of float gets these wrong.
  for (std::uint16_t bits = 0; bits + 1u < format<TestType>::infinity; ++bits) {
    const double low = positive<TestType>(bits);
    const double high = positive<TestType>(static_cast<std::uint16_t>(bits + 1u));
    const double tie = low + (high - low) / 2.0;
    for (const double value :
         {tie, std::nextafter(tie, 0.0), std::nextafter(tie, HUGE_VAL), tie * (1.0 + 0x1p-40)}) {
      check(value);
      check(-value);
    }
  }
  for (const double edge : {65519.99999999999, 65520.0, 1e300, -1e300, 5e-324, 0x1p-25 * (1 + 0x1p-50),
                            0x1p-150, 0x1p-134 * (1 + 0x1p-50), 0x1.ffp127, 0x1.feffffffp127, HUGE_VAL})
    check(edge);
  CHECK(wrong == 0);
  CHECK(twice > 1000);  // else the inputs would prove nothing
}

TEMPLATE_TEST_CASE("integers are rounded to 16 bits once", "[half]", ferry::half_t, ferry::bhalf_t) {
  auto random = generator();
  std::size_t wrong = 0;
  const auto check = [&](auto value) {
    wrong += TestType(value).bits() != format<TestType>::once(static_cast<long double>(value));
  };
  for (int value = -70000; value <= 70000; ++value) check(value);
  for (int i = 0; i < 100000; ++i) {
    const std::uint64_t bits = random() >> (random() % 64u);
    check(bits);
    check(static_cast<std::int64_t>(bits));
    check(static_cast<std::int64_t>(~bits));
  }
  // Ties of bfloat16 and their neighbours: the neighbours are not doubles.
  for (int exponent = 54; exponent < 63; ++exponent)
    for (std::int64_t step = 0; step < 128; ++step) {
      const std::int64_t tie =
          (std::int64_t{1} << exponent) + (2 * step + 1) * (std::int64_t{1} << (exponent - 8));
      for (const std::int64_t value : {tie - 1, tie, tie + 1}) {
        check(value);
        check(-value);
        check(static_cast<std::uint64_t>(value));
      }
    }
  check(std::numeric_limits<std::uint64_t>::max());
  check(std::numeric_limits<std::int64_t>::min());
  CHECK(wrong == 0);
}

TEST_CASE("16-bit numbers convert at compile time and have plain storage", "[half]") {
  STATIC_CHECK(ferry::half_t(1.0f).bits() == 0x3c00);
  STATIC_CHECK(ferry::half_t(-2.0).bits() == 0xc000);
  STATIC_CHECK(ferry::bhalf_t(1.0f).bits() == 0x3f80);
  STATIC_CHECK(static_cast<float>(ferry::half_t::from_bits(0x3555)) == 0x1.554p-2f);
  STATIC_CHECK(std::is_trivially_copyable_v<ferry::half_t> && sizeof(ferry::half_t) == 2);
  STATIC_CHECK(std::is_trivially_copyable_v<ferry::bhalf_t> && sizeof(ferry::bhalf_t) == 2);
  STATIC_CHECK(std::is_same_v<ferry::accumulation_t<ferry::half_t>, float>);
  STATIC_CHECK(std::is_same_v<ferry::accumulation_t<const ferry::bhalf_t>, float>);
  STATIC_CHECK(std::is_same_v<ferry::accumulation_t<double>, double>);
  STATIC_CHECK(std::is_same_v<ferry::accumulation_t<std::int8_t>, std::int64_t>);
  STATIC_CHECK(std::is_same_v<ferry::accumulation_t<std::uint32_t>, std::uint64_t>);
  STATIC_CHECK_FALSE(ferry::NumberElement<bool>);
}

TEST_CASE("convert goes between all number types by value", "[half]") {
  CHECK(ferry::convert<ferry::bhalf_t>(ferry::half_t(0.333f)).bits() ==
        ferry::bhalf_t(static_cast<float>(ferry::half_t(0.333f))).bits());
  CHECK(ferry::convert<double>(ferry::half_t(-1.5f)) == -1.5);
  CHECK(ferry::convert<std::int32_t>(ferry::half_t(-7.75f)) == -7);
  CHECK(ferry::convert<ferry::half_t>(std::int64_t{2049}).bits() == ferry::half_t(2048.0f).bits());
  CHECK(ferry::convert<float>(std::int32_t{-3}) == -3.0f);
  // Through float this would be a tie and go down.
  CHECK(ferry::convert<ferry::half_t>(1.0 + 0x1p-11 + 0x1p-40).bits() == 0x3c01);
}

/// Converts on the execution space, where another compiler may have had its hands on the arithmetic.
template <class T>
struct convert_elements {
  const double* source;
  T* target;
  float* back;
  KOKKOS_FUNCTION void operator()(int i) const {
    target[i] = T(source[i]);
    back[i] = static_cast<float>(target[i]);
  }
};

TEMPLATE_TEST_CASE("kernels convert to 16 bits as the host does", "[half]", ferry::half_t, ferry::bhalf_t) {
  auto random = generator();
  std::vector<double> inputs(20000);
  std::uniform_int_distribution<int> exponents(-150, 130);
  for (auto& input : inputs) input = std::ldexp(static_cast<double>(random()), exponents(random) - 63);
  const auto source = make<ferry::device_space>("inputs", inputs);
  ferry::tensor<TestType, ferry::device_space> target("numbers", inputs.size());
  ferry::tensor<float, ferry::device_space> back("floats", inputs.size());
  Kokkos::parallel_for("ferry_test::convert",
                       Kokkos::RangePolicy<exec_space>(0, static_cast<int>(inputs.size())),
                       convert_elements<TestType>{source.data(), target.data(), back.data()});
  const auto numbers = take(target);
  const auto floats = take(back);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    wrong += numbers[i].bits() != format<TestType>::once(inputs[i]);
    wrong += std::bit_cast<std::uint32_t>(floats[i]) !=
             std::bit_cast<std::uint32_t>(format<TestType>::eigen_value(numbers[i].bits()));
  }
  CHECK(wrong == 0);
}

template <class To, class From>
struct convert_all {
  const From* source;
  To* target;

  KOKKOS_FUNCTION void operator()(int i) const { target[i] = ferry::convert<To>(source[i]); }
};

TEMPLATE_TEST_CASE("kernels keep every bit pattern of 16 bits, and what is not a number, as the host does",
                   "[half]", ferry::half_t, ferry::bhalf_t) {
  const auto bits_of = [](float value) { return std::bit_cast<std::uint32_t>(value); };
  std::vector<TestType> patterns;
  for (std::uint32_t bits = 0; bits < 65536; ++bits)
    patterns.push_back(TestType::from_bits(static_cast<std::uint16_t>(bits)));
  const auto narrow = make<ferry::device_space>("patterns", patterns);
  ferry::tensor<float, ferry::device_space> wide("floats", patterns.size());
  using count = Kokkos::RangePolicy<exec_space>;
  Kokkos::parallel_for("ferry_test::widen", count(0, static_cast<int>(patterns.size())),
                       convert_all<float, TestType>{narrow.data(), wide.data()});
  const auto floats = take(wide);
  std::size_t wrong = 0;
  for (std::size_t p = 0; p < patterns.size(); ++p)
    wrong += bits_of(floats[p]) != bits_of(static_cast<float>(patterns[p]));
  CHECK(wrong == 0);

  auto random = generator(7);
  std::vector<float> inputs;  // of any bits; a quarter is not a number
  for (int i = 0; i < 40000; ++i) {
    const auto bits = static_cast<std::uint32_t>(random());
    inputs.push_back(std::bit_cast<float>(i % 4 == 0 ? bits | 0x7f800000u : bits));
  }
  const auto source = make<ferry::device_space>("inputs", inputs);
  ferry::tensor<TestType, ferry::device_space> rounded("numbers", inputs.size());
  Kokkos::parallel_for("ferry_test::narrow", count(0, static_cast<int>(inputs.size())),
                       convert_all<TestType, float>{source.data(), rounded.data()});
  const auto numbers = take(rounded);
  for (std::size_t i = 0; i < inputs.size(); ++i) wrong += numbers[i].bits() != TestType(inputs[i]).bits();
  CHECK(wrong == 0);
}

}  // namespace ferry_test::half_test
