// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/ferry.hpp>

#include <catch2/catch_get_random_seed.hpp>
#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <type_traits>
#include <vector>

/// Fresh random inputs: seeded by Catch2's own seed, which it prints, so that a failure can be repeated
/// (--rng-seed).
namespace ferry_test {

inline std::mt19937_64 generator(std::uint64_t salt = 0) {
  return std::mt19937_64(Catch::getSeed() * 0x9E3779B97F4A7C15ull + salt);
}

/// Values that every element type holds exactly, so that moves can be compared for equality.
template <class T>
std::vector<T> values(std::mt19937_64& random, std::size_t count) {
  std::uniform_int_distribution<int> small(-100, 100);
  std::vector<T> result(count);
  for (auto& value : result) {
    if constexpr (ferry::is_extended_number<T>)
      value = T(static_cast<float>(small(random)) / 8.0f);
    else if constexpr (std::is_floating_point_v<T>)
      value = static_cast<T>(small(random)) / T(8);
    else
      value = static_cast<T>(small(random));
  }
  return result;
}

/// `count` rows of [0, rows), many of them twice and more.
template <class Index>
std::vector<Index> indices(std::mt19937_64& random, std::size_t count, std::size_t rows) {
  std::uniform_int_distribution<std::size_t> any(0, rows - 1);
  std::uniform_int_distribution<std::size_t> few(0, (rows - 1) / 8);
  std::vector<Index> result(count);
  for (auto& index : result) index = static_cast<Index>((random() & 1u) != 0u ? any(random) : few(random));
  return result;
}

/// `count` different rows of [0, rows) in random order.
template <class Index>
std::vector<Index> unique_indices(std::mt19937_64& random, std::size_t count, std::size_t rows) {
  std::vector<Index> ids(rows);
  for (std::size_t i = 0; i < rows; ++i) ids[i] = static_cast<Index>(i);
  std::shuffle(ids.begin(), ids.end(), random);
  ids.resize(count);
  return ids;
}

// oracles.cpp has those of common types, optimised.
#define FERRY_TEST_VALUES(KIND, T) KIND template std::vector<T> values(std::mt19937_64&, std::size_t);
#define FERRY_TEST_INDICES(KIND, Index)                                                 \
  KIND template std::vector<Index> indices(std::mt19937_64&, std::size_t, std::size_t); \
  KIND template std::vector<Index> unique_indices(std::mt19937_64&, std::size_t, std::size_t);

FERRY_TEST_VALUES(extern, float)
FERRY_TEST_VALUES(extern, double)
FERRY_TEST_VALUES(extern, ferry::half_t)
FERRY_TEST_VALUES(extern, ferry::bhalf_t)
FERRY_TEST_VALUES(extern, std::int32_t)
FERRY_TEST_VALUES(extern, std::int64_t)
FERRY_TEST_INDICES(extern, std::int32_t)
FERRY_TEST_INDICES(extern, std::uint32_t)
FERRY_TEST_INDICES(extern, std::int64_t)
FERRY_TEST_INDICES(extern, std::uint64_t)

}  // namespace ferry_test
