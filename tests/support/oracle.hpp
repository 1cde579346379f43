// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sum_in_pieces.hpp"

#include <ferry/ferry.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

/// The verbs as plain loops in double.
namespace ferry_test {

template <class T>
double number(const T& value) {
  if constexpr (ferry::is_extended_number<T> || ferry::is_byte_float<T>)
    return static_cast<double>(static_cast<float>(value));
  else
    return static_cast<double>(value);
}

template <class T>
T element(double value) {
  return T(value);
}

/// One unit in the last place of T at `value`, with room for one more rounding.
template <class T>
double tolerance(double value) {
  double epsilon = 0.0;
  if constexpr (std::is_same_v<T, ferry::half_t>)
    epsilon = 0x1p-10;
  else if constexpr (std::is_same_v<T, ferry::bhalf_t>)
    epsilon = 0x1p-7;
  else if constexpr (std::is_floating_point_v<T>)
    epsilon = std::numeric_limits<T>::epsilon();
  return epsilon * (std::abs(value) + 1e-30);
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (std::memcmp(&a[i], &b[i], sizeof(T)) != 0) return false;
  return true;
}

/// `magnitude` is that of the operands, where the result may cancel.
template <class T>
bool close(const std::vector<T>& a, const std::vector<double>& b, double magnitude = 0.0) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!(std::abs(number(a[i]) - b[i]) <= tolerance<T>(std::abs(b[i]) + magnitude))) {
      UNSCOPED_INFO("element " << i << " is " << number(a[i]) << ", should be " << b[i]);
      return false;
    }
  return true;
}

enum class on_bad { leave, clamp };

/// The row of an index, or -1.
template <class Index>
std::int64_t row_of(Index index, std::size_t rows, on_bad policy) {
  const bool negative = std::is_signed_v<Index> && index < 0;
  if (!negative && static_cast<std::uint64_t>(index) < rows) return static_cast<std::int64_t>(index);
  if (policy == on_bad::leave) return -1;
  return negative ? 0 : static_cast<std::int64_t>(rows) - 1;
}

/// Gathers into a copy of `out`.
template <class T, class Index>
std::vector<T> gathered(const std::vector<T>& table, std::size_t width, const std::vector<Index>& indices,
                        std::vector<T> out, on_bad policy = on_bad::leave) {
  const std::size_t rows = table.size() / width;
  for (std::size_t p = 0; p < indices.size(); ++p) {
    const auto row = row_of(indices[p], rows, policy);
    if (row < 0) continue;
    for (std::size_t c = 0; c < width; ++c)
      out[p * width + c] = table[static_cast<std::size_t>(row) * width + c];
  }
  return out;
}

/// The combined value of each row that is named, by the duplicates policy's name.
template <class V, class Index>
std::map<std::int64_t, std::vector<double>> combined(const std::vector<V>& values, std::size_t width,
                                                     const std::vector<Index>& indices, std::size_t rows,
                                                     std::string_view how, on_bad policy) {
  std::map<std::int64_t, std::vector<double>> result;
  std::map<std::int64_t, double> counts;
  for (std::size_t p = 0; p < indices.size(); ++p) {
    const auto row = row_of(indices[p], rows, policy);
    if (row < 0) continue;
    const bool fresh = result.find(row) == result.end();
    auto& sum = result[row];
    sum.resize(width);
    counts[row] += 1.0;
    for (std::size_t c = 0; c < width; ++c) {
      const double value = number(values[p * width + c]);
      if (how == "duplicates::sum" || how == "duplicates::mean")
        sum[c] += value;
      else if (how == "duplicates::first") {
        if (fresh) sum[c] = value;
      } else
        sum[c] = value;
    }
  }
  if (how == "duplicates::mean")
    for (auto& [row, sum] : result)
      for (auto& value : sum) value /= counts[row];
  return result;
}

/// scatter (add = false) or scatter_add on a copy of the table.
template <class T, class V, class Index>
std::vector<double> scattered(const std::vector<T>& table, std::size_t width,
                              const std::vector<Index>& indices, const std::vector<V>& values, bool add,
                              std::string_view how, on_bad policy = on_bad::leave) {
  std::vector<double> result;
  for (const auto& value : table) result.push_back(number(value));
  for (const auto& [row, value] : combined(values, width, indices, table.size() / width, how, policy))
    for (std::size_t c = 0; c < width; ++c) {
      const double whole = std::is_integral_v<T> ? std::trunc(value[c]) : value[c];
      auto& sum = result[static_cast<std::size_t>(row) * width + c];
      sum = add ? sum + whole : whole;
    }
  return result;
}

// oracles.cpp has those of common types, optimised. Without that, loops over large arrays take most of a test's
// time.
#define FERRY_TEST_ORACLES_OF(KIND, T, Index)                                                                \
  KIND template std::vector<T> gathered(const std::vector<T>&, std::size_t, const std::vector<Index>&,       \
                                        std::vector<T>, on_bad);                                             \
  KIND template std::map<std::int64_t, std::vector<double>> combined(                                        \
      const std::vector<T>&, std::size_t, const std::vector<Index>&, std::size_t, std::string_view, on_bad); \
  KIND template std::vector<double> scattered(const std::vector<T>&, std::size_t, const std::vector<Index>&, \
                                              const std::vector<T>&, bool, std::string_view, on_bad);
#define FERRY_TEST_ORACLES(KIND, T)                                                    \
  KIND template bool same_bits(const std::vector<T>&, const std::vector<T>&);          \
  KIND template bool close(const std::vector<T>&, const std::vector<double>&, double); \
  FERRY_TEST_ORACLES_OF(KIND, T, std::int32_t)                                         \
  FERRY_TEST_ORACLES_OF(KIND, T, std::uint32_t)                                        \
  FERRY_TEST_ORACLES_OF(KIND, T, std::int64_t) FERRY_TEST_ORACLES_OF(KIND, T, std::uint64_t)

FERRY_TEST_ORACLES(extern, float)
FERRY_TEST_ORACLES(extern, double)
FERRY_TEST_ORACLES(extern, ferry::half_t)
FERRY_TEST_ORACLES(extern, ferry::bhalf_t)
FERRY_TEST_ORACLES(extern, std::int32_t)
FERRY_TEST_ORACLES(extern, std::int64_t)

}  // namespace ferry_test
