// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "formulas.hpp"

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace ferry_bench {

/// The exponent of the popularity of rows.
inline constexpr double zipf_exponent = 1.05;

/// A rank by Zipf's law, from its continuous distribution, and the row that has this rank.
struct zipf_row {
  std::uint64_t seed;
  std::uint64_t rows;
  std::uint64_t popularity;  ///< which rows are the popular ones

  KOKKOS_FUNCTION std::int64_t operator()(std::int64_t position, std::int64_t column) const {
    const auto bits = mix(mix(seed) + static_cast<std::uint64_t>(position)) >> 11;
    const double u = static_cast<double>(bits) * 0x1p-53;
    const double last = Kokkos::pow(static_cast<double>(rows) + 1, 1 - zipf_exponent);
    const double x = Kokkos::pow(1 + u * (last - 1), 1 / (1 - zipf_exponent));
    auto rank = static_cast<std::uint64_t>(x) - 1;
    if (rank >= rows) rank = rows - 1;
    return distinct_row{popularity, rows}(static_cast<std::int64_t>(rank), column);
  }
};

/// Rows by zipf_row, of which all sets have the same popular ones.
struct popular_row {
  std::uint64_t seed;
  std::uint64_t rows;
  KOKKOS_FUNCTION std::int64_t operator()(std::int64_t position, std::int64_t column) const {
    return zipf_row{seed, rows, 1}(position, column);
  }
};

}  // namespace ferry_bench
