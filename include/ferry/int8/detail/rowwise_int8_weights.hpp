// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/int8/detail/rowwise_int8_code.hpp>
#include <ferry/rows/detail/row_weights.hpp>
#include <ferry/rows/detail/tile.hpp>

#include <Kokkos_Macros.hpp>

#include <cstddef>
#include <cstdint>

namespace ferry::kernels {

/// The weights of a table of 8-bit rows. A row is read with its old scale and offset and written with those
/// of its new range. Codes are written first, since all lanes that share a row read the old scale and offset.
template <bool Random>
struct rowwise_int8_weights {
  std::byte* records;
  std::int64_t record_bytes;
  step_randomness randomness;

  static constexpr bool needs_range = true;

  struct row_view {
    std::byte* record;
    std::int64_t record_bytes;
    std::int64_t at;
    std::int64_t width;
    rowwise_int8_code code;
    step_randomness randomness;

    template <class Tile, class Compute>
    KOKKOS_FORCEINLINE_FUNCTION void load(Compute (&weight)[Tile::elements], std::int64_t column,
                                          int count) const {
      std::uint8_t codes[Tile::elements];
      load_tile<Tile>(codes, reinterpret_cast<const std::uint8_t*>(record) + column, count);
      for (int e = 0; e < live<Tile>(count); ++e) weight[e] = convert<Compute>(code.decode(codes[e]));
    }
    template <class Tile, class Compute>
    KOKKOS_FORCEINLINE_FUNCTION void store(const Compute (&weight)[Tile::elements], std::int64_t column,
                                           int count) const {
      [[maybe_unused]] constexpr int each = step_randomness::columns;
      std::uint8_t codes[Tile::elements];
      code.template encode_tile<Tile>(codes, count, [&](const auto& by, int e) {
        const auto value = convert<float>(weight[e]);
        if constexpr (Random)
          return by.at_random(value, randomness.of(at, (column + e) / each).word[(column + e) % each]);
        else
          return by.nearest(value);
      });
      store_tile<Tile>(codes, reinterpret_cast<std::uint8_t*>(record) + column, count);
    }
    KOKKOS_FUNCTION void store_range() const { code.store(record, width, record_bytes); }
  };

  KOKKOS_FUNCTION row_view row(std::int64_t at, std::int64_t width) const {
    row_view made;
    made.record = records + at * record_bytes;
    made.record_bytes = record_bytes;
    made.at = at;
    made.width = width;
    made.code = rowwise_int8_code::load(made.record, width);
    made.randomness = randomness;
    return made;
  }
  KOKKOS_FUNCTION row_view row_of_range(std::int64_t at, std::int64_t width, float least, float most) const {
    row_view made;
    made.record = records + at * record_bytes;
    made.record_bytes = record_bytes;
    made.at = at;
    made.width = width;
    made.code = rowwise_int8_code::of(least, most);
    made.randomness = randomness;
    return made;
  }
};

}  // namespace ferry::kernels
