// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "reference/half.hpp"
#include "support/oracle.hpp"
#include "support/test.hpp"

/// Element conversion as an independent oracle does it, and values that bring out its roundings.
namespace ferry_test {

template <class T>
inline constexpr bool is_floating = std::is_floating_point_v<T> || ferry::is_extended_number<T>;

/// T's value of a number that was held exactly in a long double: rounded once, to nearest even.
template <class To, class From>
To converted_once(const From& source) {
  long double exact;
  if constexpr (ferry::is_extended_number<From>)
    exact = static_cast<long double>(static_cast<float>(source));
  else
    exact = static_cast<long double>(source);
  if constexpr (std::is_same_v<To, ferry::half_t>)
    return To::from_bits(reference::half_bits_once(exact));
  else if constexpr (std::is_same_v<To, ferry::bhalf_t>)
    return To::from_bits(reference::bhalf_bits_once(exact));
  else
    return static_cast<To>(exact);
}

/// Equal bits, or not a number on both sides.
template <class T>
bool same_value(const T& a, const T& b) {
  if constexpr (is_floating<T>)
    if (std::isnan(number(a)) || std::isnan(number(b))) return std::isnan(number(a)) == std::isnan(number(b));
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

template <class T>
bool same_values(const std::vector<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!same_value(a[i], b[i])) {
      UNSCOPED_INFO("element " << i << " is " << number(a[i]) << ", should be " << number(b[i]));
      return false;
    }
  return true;
}

/// Values of From that To can hold, where To is an integer; else of all magnitudes, with ties, numbers that
/// overflow To, infinities and NaN among them.
template <class To, class From>
std::vector<From> awkward_values(std::mt19937_64& random, std::size_t count) {
  std::vector<From> result(count);
  std::uniform_int_distribution<int> exponent(-30, 30);
  std::uniform_real_distribution<double> mantissa(-2.0, 2.0), hundred(-100.0, 100.0);
  for (auto& value : result) {
    if constexpr (std::is_integral_v<From>) {
      const auto bits = static_cast<std::int64_t>(random());
      value = static_cast<From>(std::is_integral_v<To> ? bits % 100 : bits >> (random() % 60));
    } else if constexpr (std::is_integral_v<To>) {
      value = From(hundred(random));
    } else {
      const auto kind = random() % 16;
      if (kind == 0)
        value = From(std::numeric_limits<float>::quiet_NaN());
      else if (kind == 1)
        value = From(std::numeric_limits<float>::infinity());
      else if (kind == 2)
        value = From(-std::numeric_limits<float>::infinity());
      else if (kind == 3)  // halfway between two numbers of either 16-bit format
        value = From((1.0 + static_cast<double>(random() % 2048) / 2048.0) *
                     ((random() & 1u) != 0u ? 1.0 : -1.0));
      else if (kind == 4)
        value = From(-0.0);
      else
        value = From(std::ldexp(mantissa(random), exponent(random)));
    }
  }
  return result;
}

/// A table of `rows` x `width` that begins `offset` elements after its memory's begin.
template <class T, class Space>
auto view_at(ferry::tensor<T, Space>& memory, std::size_t offset, std::size_t rows, std::size_t width) {
  const auto extents =
      ferry::shape<ferry::dynamic_rank>::make(std::array<std::size_t, 2>{rows, width}, "view", sizeof(T));
  return ferry::tensor_view<T, Space>(memory.data() + offset, extents);
}

inline constexpr std::size_t conversion_widths[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 32, 33, 128};
/// Of table and batch, in elements: packets of 4 on both sides, on one, on none.
inline constexpr std::size_t conversion_offsets[][2] = {{0, 0}, {4, 4}, {1, 0}, {0, 3}, {2, 2}};

}  // namespace ferry_test
