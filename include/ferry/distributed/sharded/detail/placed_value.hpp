// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/rows/detail/fill_elements.hpp>
#include <ferry/rows/detail/global_rows.hpp>
#include <ferry/runtime/detail/launch.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>

namespace ferry::kernels {

/// A generator for a shard: elements get the values of their places in the whole table.
template <class Generator>
struct placed_value {
  static constexpr bool is_by_position = false;
  Generator generator;
  global_rows rows;
  detail::fast_divisor width;

  KOKKOS_FUNCTION auto operator()(std::int64_t row, std::int64_t column, std::int64_t) const {
    const std::int64_t whole = rows(row);
    return generator(whole, column, whole * width.divisor() + column);
  }
};

/// One that draws neighbours at once, which are in one row if `has_whole_draws`.
template <class Generator>
  requires(draws_at_once<Generator>() > 1)
struct placed_value<Generator> {
  static constexpr bool is_by_position = false;
  static constexpr int draws_at_once = Generator::draws_at_once;
  Generator generator;
  global_rows rows;
  detail::fast_divisor width;

  [[nodiscard]] bool has_whole_draws() const {
    return generator.has_whole_draws() && width.divisor() % draws_at_once == 0;
  }
  KOKKOS_FUNCTION auto operator()(std::int64_t row, std::int64_t column, std::int64_t) const {
    const std::int64_t whole = rows(row);
    return generator(whole, column, whole * width.divisor() + column);
  }
  template <class T>
  KOKKOS_FUNCTION void draw(std::int64_t number, T* target) const {
    const std::int64_t position = number * draws_at_once;
    const std::int64_t row = width.quotient(position);
    const std::int64_t first = rows(row) * width.divisor() + position - row * width.divisor();
    generator.draw(first / draws_at_once, target);
  }
  template <class T>
  void run(std::int64_t row, std::int64_t column, std::int64_t, std::int64_t count, T* target) const {
    const std::int64_t whole = rows(row);
    generator.run(whole, column, whole * width.divisor() + column, count, target);
  }
};

}  // namespace ferry::kernels
