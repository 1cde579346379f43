// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/rows/detail/global_rows.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>

namespace ferry::kernels {

/// A generator for a shard: elements get the values of their places in the whole table.
template <class Generator>
struct placed_value {
  Generator generator;
  global_rows rows;
  std::int64_t width;

  KOKKOS_FUNCTION auto operator()(std::int64_t row, std::int64_t column, std::int64_t) const {
    const std::int64_t whole = rows(row);
    return generator(whole, column, whole * width + column);
  }
};

}  // namespace ferry::kernels
