// SPDX-License-Identifier: Apache-2.0
#include "reference/half.hpp"
#include "reference/minifloat.hpp"
#include "support/test.hpp"

namespace ferry_test::fp8_rows_test {

using scale_t = ferry::ue8m0_t;
using pair_t = ferry::fp4_e2m1_pair_t;

template <class T>
inline constexpr auto format_of = std::is_same_v<T, ferry::fp8_e4m3_t>   ? reference::byte_format::e4m3
                                  : std::is_same_v<T, ferry::fp8_e5m2_t> ? reference::byte_format::e5m2
                                                                         : reference::byte_format::e8m0;

/// The value of an element, and an element of it, rounded once, by the oracles.
/// @{
template <class T>
double exact(const T& value) {
  if constexpr (ferry::is_byte_float<T>)
    return reference::value_of(format_of<T>, value.bits());
  else if constexpr (std::is_same_v<T, ferry::half_t>)
    return reference::eigen_half_value(value.bits());
  else if constexpr (std::is_same_v<T, ferry::bhalf_t>)
    return reference::eigen_bhalf_value(value.bits());
  else
    return static_cast<double>(value);
}
template <class T>
T rounded(double value) {
  if constexpr (ferry::is_byte_float<T>)
    return T::from_bits(reference::byte_of(format_of<T>, value));
  else if constexpr (std::is_same_v<T, ferry::half_t>)
    return T::from_bits(reference::half_bits_once(value));
  else if constexpr (std::is_same_v<T, ferry::bhalf_t>)
    return T::from_bits(reference::bhalf_bits_once(value));
  else
    return static_cast<T>(value);
}
/// @}

template <class T>
bool are_same(const std::vector<T>& values, const std::vector<T>& expected) {
  if (values.size() != expected.size()) return false;
  for (std::size_t i = 0; i < values.size(); ++i) {
    bool same = std::memcmp(&values[i], &expected[i], sizeof(T)) == 0;
    if constexpr (!std::is_same_v<T, pair_t>)
      same = same || (std::isnan(exact(values[i])) && std::isnan(exact(expected[i])));
    if (!same) {
      UNSCOPED_INFO("element " << i);
      return false;
    }
  }
  return true;
}

/// Any bits of elements of one byte; else numbers of many magnitudes, infinities and NaN.
template <class T>
std::vector<T> contents(std::mt19937_64& random, std::size_t count) {
  std::vector<T> list(count);
  std::uniform_int_distribution<int> exponents(-20, 18);
  for (auto& value : list) {
    if constexpr (sizeof(T) == 1) {
      value = std::bit_cast<T>(static_cast<std::uint8_t>(random()));
    } else {
      const double magnitude = std::ldexp(static_cast<double>(random() >> 11), exponents(random) - 53);
      const double number = random() % 97 == 0 ? HUGE_VAL : random() % 89 == 0 ? std::nan("") : magnitude;
      value = rounded<T>(random() % 2 == 0 ? number : -number);
    }
  }
  return list;
}

const std::vector<std::int64_t> picked{5, 0, 18, 5, 7, 1};
constexpr std::size_t table_rows = 19;

TEMPLATE_TEST_CASE("rows of 8 and 4 bits move as they are", "[rows][fp8]", ferry::fp8_e4m3_t,
                   ferry::fp8_e5m2_t, scale_t, pair_t) {
  auto random = generator();
  const exec_space exec;
  for (const std::size_t width : {1u, 3u, 16u, 37u}) {
    CAPTURE(width);
    const auto start = contents<TestType>(random, table_rows * width);
    const auto fresh = contents<TestType>(random, picked.size() * width);
    auto table = make<ferry::mapped_space>("table", table_rows, width, start);
    auto batch = make<ferry::device_space>("batch", picked.size(), width, fresh);
    std::vector<TestType> expected;
    for (const auto row : picked)
      expected.insert(expected.end(), start.begin() + row * static_cast<std::ptrdiff_t>(width),
                      start.begin() + (row + 1) * static_cast<std::ptrdiff_t>(width));
    ferry::gather(exec, table, picked, batch).wait();
    CHECK(are_same(take(batch), expected));
    put(batch, fresh);
    ferry::gather(exec, table, picked, batch, ferry::path::staged{}).wait();
    CHECK(are_same(take(batch), expected));

    put(batch, fresh);
    ferry::scatter(exec, table, picked, batch).wait();
    auto written = start;
    for (std::size_t p = 0; p < picked.size(); ++p)
      std::copy_n(fresh.begin() + static_cast<std::ptrdiff_t>(p * width), width,
                  written.begin() + picked[p] * static_cast<std::ptrdiff_t>(width));
    CHECK(are_same(take(table), written));

    ferry::tensor<TestType, ferry::pageable_space> copied("copied", table_rows, width);
    ferry::copy(exec, table, copied).wait();
    CHECK(are_same(take(copied), written));
    ferry::init::zeros(exec, table);
    CHECK(are_same(take(table), std::vector<TestType>(table_rows * width, TestType::from_bits(0))));
    ferry::init::constant(exec, table, TestType::from_bits(0x35));
    CHECK(are_same(take(table), std::vector<TestType>(table_rows * width, TestType::from_bits(0x35))));
  }
}

using conversions =
    std::tuple<std::tuple<ferry::fp8_e4m3_t, float>, std::tuple<ferry::fp8_e4m3_t, ferry::half_t>,
               std::tuple<ferry::fp8_e5m2_t, ferry::bhalf_t>, std::tuple<ferry::fp8_e5m2_t, double>,
               std::tuple<scale_t, float>, std::tuple<ferry::fp8_e5m2_t, ferry::fp8_e4m3_t>,
               std::tuple<float, ferry::fp8_e4m3_t>, std::tuple<double, ferry::fp8_e5m2_t>,
               std::tuple<ferry::half_t, ferry::fp8_e4m3_t>, std::tuple<float, scale_t>>;

TEMPLATE_LIST_TEST_CASE("rows of 8 bits convert on the way", "[rows][fp8][convert]", conversions) {
  using stored = std::tuple_element_t<0, TestType>;
  using moved = std::tuple_element_t<1, TestType>;
  auto random = generator();
  const exec_space exec;
  for (const std::size_t width : {1u, 12u, 33u}) {
    CAPTURE(width);
    const auto start = contents<stored>(random, table_rows * width);
    const auto fresh = contents<moved>(random, picked.size() * width);
    auto table = make<ferry::mapped_space>("table", table_rows, width, start);
    auto batch = make<ferry::device_space>("batch", picked.size(), width, fresh);
    std::vector<moved> expected;
    for (const auto row : picked)
      for (std::size_t c = 0; c < width; ++c)
        expected.push_back(rounded<moved>(exact(start[static_cast<std::size_t>(row) * width + c])));
    ferry::gather(exec, table, picked, batch).wait();
    CHECK(are_same(take(batch), expected));
    put(batch, fresh);
    ferry::gather(exec, table, picked, batch, ferry::path::staged{}).wait();
    CHECK(are_same(take(batch), expected));

    put(batch, fresh);
    auto written = start;
    for (std::size_t p = 0; p < picked.size(); ++p)
      for (std::size_t c = 0; c < width; ++c)
        written[static_cast<std::size_t>(picked[p]) * width + c] =
            rounded<stored>(exact(fresh[p * width + c]));
    ferry::scatter(exec, table, picked, batch).wait();
    CHECK(are_same(take(table), written));

    ferry::tensor<moved, ferry::device_space> copied("copied", table_rows, width);
    ferry::copy(exec, table, copied).wait();
    std::vector<moved> converted;
    for (const auto& value : written) converted.push_back(rounded<moved>(exact(value)));
    CHECK(are_same(take(copied), converted));
  }
}

TEST_CASE("sums of floats are encoded once", "[rows][fp8]") {
  const exec_space exec;
  auto table =
      make<ferry::mapped_space>("table", 2, 1, std::vector<ferry::fp8_e4m3_t>(2, ferry::fp8_e4m3_t(1)));
  const auto values = make<ferry::device_space>("values", 3, 1, std::vector<float>{1.0f, 0.0625f, 0.0625f});
  ferry::scatter(exec, table, std::vector<std::int64_t>{1, 1, 1}, values, ferry::duplicates::sum{}).wait();
  CHECK(float{take(table)[1]} == 1.125f);
}

TEMPLATE_TEST_CASE("initial values of 8 bits are those of double, rounded once", "[init][fp8]",
                   ferry::fp8_e4m3_t, ferry::fp8_e5m2_t, scale_t) {
  const exec_space exec;
  const std::size_t rows = 101, width = 7;
  ferry::tensor<TestType, ferry::mapped_space> table("table", rows, width);
  ferry::tensor<double, ferry::mapped_space> drawn("drawn", rows, width);
  const auto check = [&](double low, double high) {
    const auto values = take(drawn);
    std::vector<TestType> expected;
    for (const double value : values) {
      const auto near_value = rounded<TestType>(value);
      expected.push_back(low < high && !(exact(near_value) < high) ? rounded<TestType>(low) : near_value);
    }
    CHECK(are_same(take(table), expected));
  };
  ferry::init::uniform(exec, table, 0.25, 3.0, 7);
  ferry::init::uniform(exec, drawn, 0.25, 3.0, 7);
  check(0.25, 3.0);
  ferry::init::normal(exec, table, 0.5, 2.0, 11);
  ferry::init::normal(exec, drawn, 0.5, 2.0, 11);
  check(0.0, 0.0);
  ferry::init::constant(exec, table, 1e9);
  ferry::init::constant(exec, drawn, 1e9);
  check(0.0, 0.0);
  ferry::init::constant(exec, table, 3);
  ferry::init::constant(exec, drawn, 3);
  check(0.0, 0.0);
  ferry::init::zeros(exec, table);
  for (const auto& value : take(table)) CHECK(value.bits() == 0);
}

}  // namespace ferry_test::fp8_rows_test
