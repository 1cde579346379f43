// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Macros.hpp>

#include <cstdint>

namespace ferry::kernels {

/// A bijection of [0, rows), chosen by a seed: on the smallest power of two that holds the rows, additions,
/// multiplications by odd numbers and shifts, which all have an inverse; values outside of [0, rows) are
/// sent on until they come inside (cycle walking, Black and Rogaway 2002). Numbers that are outside at first
/// stay as they are, because a cycle of such numbers alone has no end.
class row_scramble {
 public:
  /// The identity.
  constexpr row_scramble() = default;
  KOKKOS_FUNCTION constexpr row_scramble(std::int64_t rows, std::uint64_t seed)
      : rows_(static_cast<std::uint64_t>(rows)), seed_(seed) {}

  [[nodiscard]] KOKKOS_FUNCTION constexpr bool is_identity() const { return rows_ < 2; }
  [[nodiscard]] KOKKOS_FUNCTION constexpr std::int64_t forward(std::int64_t row) const {
    if (keeps(row)) return row;
    auto x = static_cast<std::uint64_t>(row);
    do {
      x = round(round(x, seed_), seed_ >> 32 | seed_ << 32);
    } while (x >= rows_);
    return static_cast<std::int64_t>(x);
  }
  [[nodiscard]] KOKKOS_FUNCTION constexpr std::int64_t backward(std::int64_t number) const {
    if (keeps(number)) return number;
    auto x = static_cast<std::uint64_t>(number);
    do {
      x = undone(undone(x, seed_ >> 32 | seed_ << 32), seed_);
    } while (x >= rows_);
    return static_cast<std::int64_t>(x);
  }

 private:
  [[nodiscard]] KOKKOS_FUNCTION constexpr bool keeps(std::int64_t row) const {
    return is_identity() || static_cast<std::uint64_t>(row) >= rows_;
  }

  // Odd, so that they have inverses modulo powers of two: factor * inverse = 1 (mod 2^64).
  static constexpr std::uint64_t factor = 0xD1342543DE82EF95ull, second = 0x9E3779B97F4A7C15ull;
  [[nodiscard]] KOKKOS_FUNCTION static constexpr std::uint64_t inverse_of(std::uint64_t odd) {
    std::uint64_t inverse = odd;  // right in the three lowest bits; each round doubles their number
    for (int i = 0; i < 5; ++i) inverse *= 2 - odd * inverse;
    return inverse;
  }

  [[nodiscard]] KOKKOS_FUNCTION constexpr int bits() const {
    int count = 1;
    while (count < 63 && (std::uint64_t{1} << count) < rows_) ++count;
    return count;
  }
  /// A shift by at least half of the bits is its own inverse.
  [[nodiscard]] KOKKOS_FUNCTION constexpr std::uint64_t round(std::uint64_t x, std::uint64_t key) const {
    const int count = bits(), shift = (count + 1) / 2;
    const std::uint64_t mask = (std::uint64_t{1} << count) - 1;
    x = (x + key * factor) & mask;
    x = (x * factor) & mask;
    x ^= x >> shift;
    x = (x * second) & mask;
    return x ^ x >> shift;
  }
  [[nodiscard]] KOKKOS_FUNCTION constexpr std::uint64_t undone(std::uint64_t x, std::uint64_t key) const {
    const int count = bits(), shift = (count + 1) / 2;
    const std::uint64_t mask = (std::uint64_t{1} << count) - 1;
    x ^= x >> shift;
    x = (x * inverse_of(second)) & mask;
    x ^= x >> shift;
    x = (x * inverse_of(factor)) & mask;
    return (x - key * factor) & mask;
  }

  std::uint64_t rows_ = 0;
  std::uint64_t seed_ = 0;
};

/// The number in a whole table of each row of a part of it, so that what is drawn or looked up by row does
/// not depend on how the table is split. By default a table is its own whole.
struct global_rows {
  std::int64_t first = 0;
  std::int64_t stride = 1;
  row_scramble scramble{};
  const std::int64_t* numbers = nullptr;  ///< of each row, if they follow no rule

  [[nodiscard]] KOKKOS_FUNCTION constexpr std::int64_t operator()(std::int64_t local) const {
    if (numbers != nullptr) return numbers[local];
    return scramble.backward(first + local * stride);
  }
};

}  // namespace ferry::kernels
