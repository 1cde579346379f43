// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/quantized/detail/rowwise_int8_code.hpp>
#include <ferry/rows/detail/packet.hpp>
#include <ferry/rows/detail/row_weights.hpp>
#include <ferry/rows/detail/tile.hpp>

#include <Kokkos_Macros.hpp>

#include <cstddef>
#include <cstdint>

namespace ferry::kernels {

/// Codes of a row, and its scale and offset: a packed tile of a device before it is decoded.
template <int Elements>
struct rowwise_int8_tile {
  packet<std::uint32_t, Elements / 4> codes;
  rowwise_int8_code code;

  /// A number that needs what load_codes loads.
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION std::uint32_t some_bits() const {
    return codes.value[0] ^ detail::bit_cast<std::uint32_t>(code.scale);
  }

  /// Decodes by one operation of floats for each element, to the bits of rowwise_int8_code::decode if that
  /// adds_exactly().
  template <class Compute>
  KOKKOS_FORCEINLINE_FUNCTION void decode(Compute (&value)[Elements]) const {
    for (int w = 0; w < Elements / 4; ++w) {
      float number[4];
      if (!device_backend<Compute>::widen_four_bytes(codes.value[w], number))
        for (int e = 0; e < 4; ++e) number[e] = static_cast<float>(codes.value[w] >> (8 * e) & 0xffu);
      for (int e = 0; e < 4; ++e) value[4 * w + e] = Compute(code.decode_fused(number[e]));
    }
  }
};

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
    std::int64_t row;
    std::int64_t width;
    rowwise_int8_code code;  ///< for store
    step_randomness randomness;

    /// Loads scale and offset next to the codes: a row that waited for them first would wait twice.
    template <class Tile, class Compute>
    KOKKOS_FORCEINLINE_FUNCTION void load(Compute (&weight)[Tile::elements], std::int64_t column,
                                          int count) const {
      std::uint8_t codes[Tile::elements];
      load_tile<Tile>(codes, reinterpret_cast<const std::uint8_t*>(record) + column, count);
      const auto old_code = rowwise_int8_code::load < Tile::packed ? Tile::elements : 1 > (record, width);
      for (int e = 0; e < live<Tile>(count); ++e) weight[e] = convert<Compute>(old_code.decode(codes[e]));
    }
    /// The codes of a tile as they are, for rowwise_int8_tile::decode.
    template <class Tile>
    [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION rowwise_int8_tile<Tile::elements> load_codes(
        std::int64_t column) const {
      const auto* const words = reinterpret_cast<const std::uint32_t*>(record + column);
      return {load_packet<std::uint32_t, Tile::elements / 4>(words),
              rowwise_int8_code::load<Tile::elements>(record, width)};
    }
    template <class Tile, class Compute>
    KOKKOS_FORCEINLINE_FUNCTION void store(const Compute (&weight)[Tile::elements], std::int64_t column,
                                           int count) const {
      [[maybe_unused]] constexpr int words = step_randomness::columns;
      std::uint8_t codes[Tile::elements];
      code.template encode_tile<Tile>(codes, count, [&](const auto& steps, int e) {
        const auto value = convert<float>(weight[e]);
        if constexpr (Random)
          return steps.at_random(value,
                                 randomness.draw(row, (column + e) / words).word[(column + e) % words]);
        else
          return steps.nearest(value);
      });
      store_tile<Tile>(codes, reinterpret_cast<std::uint8_t*>(record) + column, count);
    }
    KOKKOS_FUNCTION void store_range() const { code.store(record, width, record_bytes); }
  };

  KOKKOS_FUNCTION row_view row(std::int64_t index, std::int64_t width) const {
    row_view view;
    view.record = records + index * record_bytes;
    view.record_bytes = record_bytes;
    view.row = index;
    view.width = width;
    view.code = {};
    view.randomness = randomness;
    return view;
  }
  KOKKOS_FUNCTION row_view row_of_range(std::int64_t index, std::int64_t width, float least,
                                        float most) const {
    row_view view;
    view.record = records + index * record_bytes;
    view.record_bytes = record_bytes;
    view.row = index;
    view.width = width;
    view.code = rowwise_int8_code::of(least, most);
    view.randomness = randomness;
    return view;
  }
};

}  // namespace ferry::kernels
