// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rows/conversion.hpp"
#include "support/oracle.hpp"
#include "support/test.hpp"

#include <ferry/int8.hpp>

/// 8-bit rows as plain loops make them: the definition, in long double where it is about exactness.
namespace ferry_test {

inline std::size_t record_bytes(std::size_t width) {
  std::size_t bytes = width + 8;
  while (bytes % 16 != 0) ++bytes;
  return bytes;
}

/// The record of one row of floats.
std::vector<std::byte> record_of(const std::vector<float>& row);

template <class V>
std::vector<float> row_at(const std::vector<V>& table, std::size_t width, std::size_t row) {
  std::vector<float> result;
  for (std::size_t c = 0; c < width; ++c) {
    if constexpr (std::is_same_v<V, double>)
      result.push_back(static_cast<float>(table[row * width + c]));
    else
      result.push_back(static_cast<float>(number(table[row * width + c])));
  }
  return result;
}

template <class V>
std::vector<std::byte> records_of(const std::vector<V>& table, std::size_t width) {
  std::vector<std::byte> result;
  for (std::size_t row = 0; row < table.size() / width; ++row) {
    const auto record = record_of(row_at(table, width, row));
    result.insert(result.end(), record.begin(), record.end());
  }
  return result;
}

/// The numbers that the records stand for.
std::vector<double> values_of(const std::vector<std::byte>& records, std::size_t width);

template <class Out>
std::vector<Out> as(const std::vector<double>& numbers) {
  std::vector<Out> result;
  for (const double value : numbers) result.push_back(converted_once<Out>(value));
  return result;
}

/// Rows of quite different ranges, one of them constant.
template <class V>
std::vector<V> uneven_rows(std::mt19937_64& random, std::size_t rows, std::size_t width) {
  std::uniform_real_distribution<double> unit(-1.0, 1.0);
  std::vector<V> result;
  for (std::size_t row = 0; row < rows; ++row) {
    const double middle = 10.0 * unit(random);
    const double spread = row % 7 == 3 ? 0.0 : std::ldexp(1.0, static_cast<int>(random() % 12) - 8);
    for (std::size_t c = 0; c < width; ++c) result.push_back(V(middle + spread * unit(random)));
  }
  return result;
}

// oracles.cpp has these, optimised.
#define FERRY_TEST_RECORDS(KIND, V)                                                         \
  KIND template std::vector<float> row_at(const std::vector<V>&, std::size_t, std::size_t); \
  KIND template std::vector<std::byte> records_of(const std::vector<V>&, std::size_t);      \
  KIND template std::vector<V> as(const std::vector<double>&);                              \
  KIND template std::vector<V> uneven_rows(std::mt19937_64&, std::size_t, std::size_t);

FERRY_TEST_RECORDS(extern, float)
FERRY_TEST_RECORDS(extern, double)
FERRY_TEST_RECORDS(extern, ferry::half_t)
FERRY_TEST_RECORDS(extern, ferry::bhalf_t)

/// An 8-bit table with these records.
template <class Space>
ferry::rowwise_int8_tensor<Space> table_of(const std::vector<std::byte>& records, std::size_t width) {
  ferry::rowwise_int8_tensor<Space> result("weights", records.size() / record_bytes(width), width);
  REQUIRE(result.row_bytes() == record_bytes(width));
  put(result.records(), records);
  return result;
}

}  // namespace ferry_test
