// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/rows/detail/fill_elements.hpp>
#include <ferry/rows/detail/global_rows.hpp>
#include <ferry/runtime/detail/launch.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>

namespace ferry::kernels {

/// A generator for a shard: elements get the values of their positions in the whole table.
template <class Generator>
struct placed_value {
  static constexpr bool is_by_position = false;
  static constexpr int neighbours = [] {
    if constexpr (requires { Generator::neighbours; }) return Generator::neighbours;
    return 0;
  }();
  Generator generator;
  global_rows rows;
  detail::fast_divisor width;

  KOKKOS_FUNCTION auto operator()(std::int64_t row, std::int64_t column, std::int64_t) const {
    const std::int64_t whole = rows(row);
    return generator(whole, column, whole * width.divisor() + column);
  }
  /// For neighbours of one row.
  KOKKOS_FUNCTION auto draw(std::int64_t number) const requires(neighbours > 0) {
    const std::int64_t position = number * neighbours;
    const std::int64_t row = width.quotient(position);
    return generator.draw((rows(row) * width.divisor() + position - row * width.divisor()) / neighbours);
  }
  template <class T>
  void run(std::int64_t row, std::int64_t column, std::int64_t, std::int64_t count, T* target) const
      requires(neighbours > 0) {
    const std::int64_t whole = rows(row);
    generator.run(whole, column, whole * width.divisor() + column, count, target);
  }
};

}  // namespace ferry::kernels
