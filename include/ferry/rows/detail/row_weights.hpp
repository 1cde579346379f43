// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/rows/detail/global_rows.hpp>
#include <ferry/rows/detail/tile.hpp>
#include <ferry/tensor/detail/numeric.hpp>
#include <ferry/tensor/detail/random.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>

/// A table's weights as an update reads and writes them, tile by tile. `row(row, width)` is the view of one
/// row.
namespace ferry::kernels {

/// One row of weights that are plain numbers.
template <class Weights>
struct weights_of_row {
  Weights table;
  std::int64_t number;

  template <class Tile, class Compute>
  KOKKOS_FORCEINLINE_FUNCTION void load(Compute (&weight)[Tile::elements], std::int64_t column,
                                        int count) const {
    table.template load<Tile>(weight, number, column, count);
  }
  template <class Tile, class Compute>
  KOKKOS_FORCEINLINE_FUNCTION void store(const Compute (&weight)[Tile::elements], std::int64_t column,
                                         int count) const {
    table.template store<Tile>(weight, number, column, count);
  }
};

/// Weights in an array.
template <class T>
struct weights_in_array {
  T* data;
  std::int64_t stride;

  template <class Visit>
  KOKKOS_FORCEINLINE_FUNCTION void visit_rows(const Visit& visit) {
    visit(data);
  }
  template <class Tile, class Compute>
  KOKKOS_FORCEINLINE_FUNCTION void load(Compute (&weight)[Tile::elements], std::int64_t row,
                                        std::int64_t column, int count) const {
    load_tile<Tile>(weight, data + row_offset<Tile>(row, stride) + column, count);
  }
};

/// Rounds to nearest if the table's format is narrow.
template <class T>
struct nearest_weights : weights_in_array<T> {
  using row_view = weights_of_row<nearest_weights>;

  KOKKOS_FORCEINLINE_FUNCTION row_view row(std::int64_t number, std::int64_t) const {
    return {*this, number};
  }
  template <class Tile, class Compute>
  KOKKOS_FORCEINLINE_FUNCTION void store(const Compute (&weight)[Tile::elements], std::int64_t row,
                                         std::int64_t column, int count) const {
    store_tile<Tile>(weight, this->data + row_offset<Tile>(row, this->stride) + column, count);
  }
};

/// The random bits of a table's elements in one step. Four neighbouring columns share a block of the
/// generator. A part of a table draws the bits that its rows have in the whole table.
struct step_randomness {
  std::uint64_t seed;
  std::uint64_t step;
  global_rows rows{};

  static constexpr int columns = 4;

  KOKKOS_FORCEINLINE_FUNCTION random::philox_block draw(std::int64_t row, std::int64_t block) const {
    const auto r = static_cast<std::uint64_t>(rows(row));
    return random::philox({{static_cast<std::uint32_t>(r), static_cast<std::uint32_t>(r >> 32),
                            static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(step)}},
                          seed ^ (step >> 32 << 32));
  }
};

/// Rounds at random to one of the two neighbours.
template <class T>
struct stochastic_weights : weights_in_array<T> {
  step_randomness randomness;

  using row_view = weights_of_row<stochastic_weights>;

  KOKKOS_FORCEINLINE_FUNCTION row_view row(std::int64_t number, std::int64_t) const {
    return {*this, number};
  }
  template <class Tile, class Compute>
  KOKKOS_FORCEINLINE_FUNCTION void store(const Compute (&weight)[Tile::elements], std::int64_t row,
                                         std::int64_t column, int count) const {
    constexpr int block = step_randomness::columns;
    static_assert(Tile::elements == 1 || Tile::elements % block == 0);
    T narrow[Tile::elements];
    if constexpr (Tile::elements == 1) {
      narrow[0] = rounded(weight[0], randomness.draw(row, column / block).word[column % block]);
    } else {
      for (int first = 0; first < live<Tile>(count); first += block) {
        const auto bits = randomness.draw(row, (column + first) / block);
        for (int e = 0; e < block; ++e)
          if (first + e < live<Tile>(count)) narrow[first + e] = rounded(weight[first + e], bits.word[e]);
      }
    }
    store_tile<Tile>(narrow, this->data + row_offset<Tile>(row, this->stride) + column, count);
  }

 private:
  template <class Compute>
  KOKKOS_FORCEINLINE_FUNCTION static T rounded(const Compute& weight, std::uint32_t bits) {
    const auto wide = convert<double>(weight);
    return T::at_random(detail::to_float_odd(wide), bits);
  }
};

template <bool AtRandom, class T>
auto weights_rounded(T* data, std::int64_t stride, [[maybe_unused]] const step_randomness& randomness) {
  if constexpr (AtRandom)
    return stochastic_weights<T>{{data, stride}, randomness};
  else
    return nearest_weights<T>{{data, stride}};
}

/// True of weights that are plain numbers, rounded to nearest.
template <class Weights>
inline constexpr bool is_nearest = false;
template <class T>
inline constexpr bool is_nearest<nearest_weights<T>> = true;

}  // namespace ferry::kernels
