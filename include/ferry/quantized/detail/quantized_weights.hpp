// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/quantized/detail/block_bounds.hpp>
#include <ferry/quantized/detail/coded_memory.hpp>
#include <ferry/quantized/quantization.hpp>
#include <ferry/rows/detail/row_walk.hpp>
#include <ferry/rows/detail/row_weights.hpp>
#include <ferry/rows/detail/tile.hpp>
#include <ferry/tensor/detail/numeric.hpp>

#include <Kokkos_Macros.hpp>

#include <cstddef>
#include <cstdint>

namespace ferry::kernels {

/// True if a quantization has an encode_at_random.
template <class Q>
inline constexpr bool rounds_at_random = requires(float value, typename Q::step_type step,
                                                  std::uint32_t random) {
  Q::encode_at_random(value, step, random);
};

/// A row of codes and scales, decoded tile by tile. Tiles begin at multiples of their size.
template <class Q, class Byte = const std::byte>
struct coded_row {
  static constexpr int bits = Q::code_bits;

  Byte* codes;
  scale_pointer<Q> scales;
  float tensor_scale;

  /// Columns: a divisor of the width.
  template <int Columns = 1>
  KOKKOS_FORCEINLINE_FUNCTION typename Q::step_type step_at(std::int64_t column) const {
    return Q::step_of(scale_at<Q, Columns>(scales, coded_blocks<Q>::block_of(column)), tensor_scale);
  }

  /// Loads the scale next to the codes: a row that waited for it first would wait twice.
  template <class Tile, class Compute>
  KOKKOS_FORCEINLINE_FUNCTION void load(Compute (&weight)[Tile::elements], std::int64_t column,
                                        int count) const {
    constexpr bool shares_scale = Q::block % Tile::elements == 0;
    constexpr int columns = Tile::packed ? Tile::elements : 1;
    [[maybe_unused]] std::uint8_t bytes[Tile::elements];
    if constexpr (bits == 8)
      load_tile<Tile>(bytes, reinterpret_cast<const std::uint8_t*>(codes) + column, count);
    auto step = step_at<columns>(column);
    if constexpr (Tile::packed && bits == 8 && shares_scale && ferry::detail::decodes_words<Q>) {
      bool decoded = true;
      for (int e = 0; e < Tile::elements; e += 4) {
        float value[4];
        const std::uint32_t word = std::uint32_t{bytes[e]} | std::uint32_t{bytes[e + 1]} << 8 |
                                   std::uint32_t{bytes[e + 2]} << 16 | std::uint32_t{bytes[e + 3]} << 24;
        decoded = decoded && Q::decode_word(word, step, value);
        if (decoded)
          for (int k = 0; k < 4; ++k) weight[e + k] = convert<Compute>(value[k]);
      }
      if (decoded) return;
    }
    for (int e = 0; e < live<Tile>(count); ++e) {
      if constexpr (!shares_scale) step = step_at(column + e);
      if constexpr (bits == 8)
        weight[e] = convert<Compute>(Q::decode(bytes[e], step));
      else
        weight[e] = convert<Compute>(Q::decode(code_at<bits>(codes, column + e), step));
    }
  }
};

/// The weights of a table of quantized rows in a step. Each block of a row is read with its old scale and
/// written with that of its new numbers; the factor of the table stays. A scale is written when all lanes
/// that share its block have read the old one.
template <class Q, bool Random>
struct quantized_weights {
  static constexpr int bits = Q::code_bits;
  static constexpr int block = Q::block;
  static constexpr bool has_block_scales = has_scales<Q>;

  std::byte* codes;
  std::int64_t row_bytes;  ///< of codes, or of a record
  typename Q::scale_type* scales;
  std::int64_t blocks;  ///< scales of a row
  float tensor_scale;
  step_randomness randomness;

  struct row_view : coded_row<Q, std::byte> {
    std::int64_t row;
    step_randomness randomness;
    typename Q::step_type step;  ///< by which numbers are encoded

    template <class Tile, class Compute>
    KOKKOS_FORCEINLINE_FUNCTION void store(const Compute (&weight)[Tile::elements], std::int64_t column,
                                           int count) const {
      if constexpr (Tile::packed) {
        const ferry::detail::encoder_of<Q> by_fours(step);
        put_codes<bits, Tile::elements>(this->codes + column * bits / 8, [&](int first) {
          float value[4];
          for (int e = 0; e < 4; ++e) value[e] = convert<float>(weight[first + e]);
          if constexpr (Random)
            return codes_at_random(value, column + first);
          else
            return four_codes<Q>(value, step, by_fours);
        });
      } else {
        std::uint32_t code[Tile::elements];
        for (int e = 0; e < live<Tile>(count); ++e) code[e] = encoded(convert<float>(weight[e]), column + e);
        if constexpr (bits == 8) {
          std::uint8_t bytes[Tile::elements];
          for (int e = 0; e < live<Tile>(count); ++e) bytes[e] = static_cast<std::uint8_t>(code[e]);
          store_tile<Tile>(bytes, reinterpret_cast<std::uint8_t*>(this->codes) + column, count);
        } else {
          for (int e = 0; e < live<Tile>(count); ++e) put_code<bits>(this->codes, column + e, code[e]);
        }
      }
    }

   private:
    KOKKOS_FORCEINLINE_FUNCTION std::uint32_t encoded(float value, std::int64_t column) const {
      [[maybe_unused]] constexpr int words = step_randomness::columns;
      if constexpr (Random)
        return Q::encode_at_random(value, step, randomness.draw(row, column / words).word[column % words]);
      else
        return Q::encode(value, step);
    }
    /// The codes of the columns of one draw.
    KOKKOS_FORCEINLINE_FUNCTION std::uint64_t codes_at_random(const float (&value)[4],
                                                              std::int64_t column) const {
      static_assert(step_randomness::columns == 4);
      const auto draw = randomness.draw(row, column / 4);
      std::uint64_t joined = 0;
      for (int e = 0; e < 4; ++e)
        joined |= static_cast<std::uint64_t>(Q::encode_at_random(value[e], step, draw.word[e])) << (e * bits);
      return joined;
    }
  };

  template <class Visit>
  KOKKOS_FORCEINLINE_FUNCTION void visit_rows(const Visit& visit) {
    visit(codes);
    if constexpr (ferry::detail::has_scale_array<Q>) visit(scales);
  }

  KOKKOS_FORCEINLINE_FUNCTION row_view row(std::int64_t index, std::int64_t width) const {
    row_view view;
    view.codes = codes + index * row_bytes;
    if constexpr (Q::in_records)
      view.scales = view.codes + width;
    else
      view.scales = scales + (has_block_scales ? index * blocks : 0);
    view.tensor_scale = tensor_scale;
    view.row = index;
    view.randomness = randomness;
    if constexpr (!has_block_scales) view.step = Q::step_of(no_scale{}, tensor_scale);
    return view;
  }

  /// The scale of numbers with these bounds.
  KOKKOS_FORCEINLINE_FUNCTION typename Q::scale_type scale_of(const block_bounds::values& bounds) const {
    return Q::scale_of({bounds.min_val, bounds.max_val}, tensor_scale);
  }
  KOKKOS_FORCEINLINE_FUNCTION row_view scaled_by(row_view view, const typename Q::scale_type& scale) const {
    view.step = Q::step_of(scale, tensor_scale);
    return view;
  }
  KOKKOS_FORCEINLINE_FUNCTION void store_scale(const row_view& view, std::int64_t width,
                                               [[maybe_unused]] std::int64_t number,
                                               const typename Q::scale_type& scale) const {
    if constexpr (Q::in_records)
      scale.store(view.codes + width, row_bytes - width);
    else
      scales[view.row * blocks + number] = scale;
  }
};

/// True if the numbers of a table's blocks have scales of their own, which a step computes anew.
template <class Weights>
inline constexpr bool has_block_scales = requires {
  requires Weights::has_block_scales;
};

/// True if each block of a row is written by one lane of a device alone.
template <class Weights, class Tile>
inline constexpr bool has_lone_blocks = false;
template <class Q, bool Random, class Tile>
inline constexpr bool has_lone_blocks<quantized_weights<Q, Random>, Tile> =
    Q::block != 0 && !Tile::host && sharing_lanes<Tile, Q::block> == 0;

/// Writes the new weights of a row with the scales that its blocks need: of a block that is the row, of
/// blocks that lanes have, a tile each, and of others, each of one thread.
///   tile_at(column, count)                  a tile of the row, with `weight`
///   store(target, tile, column, count)      writes it, the weights to a row_view
template <class Tile, class Weights, class Walk, class TileAt, class Store>
KOKKOS_FORCEINLINE_FUNCTION void store_blocks(const Weights& table, const typename Weights::row_view& row,
                                              std::int64_t width, const Walk& walk, const TileAt& tile_at,
                                              const Store& store) {
  constexpr int block = Weights::block, sharers = Walk::has_lanes ? sharing_lanes<Tile, block> : 0;
  const auto load = [](float(&value)[Tile::elements], const auto& tile, int count) {
    load_tile<Tile>(value, &tile.weight[0], count);
  };
  const auto store_tile = [&](const auto& target, std::int64_t column, int count) {
    store(target, tile_at(column, count), column, count);
  };
  if constexpr (block == 0) {
    const auto scale = table.scale_of(walk.template bounds<block_bounds>(
        [&](std::int64_t column, int count, float(&value)[Tile::elements]) {
          load(value, tile_at(column, count), count);
        }));
    const auto target = table.scaled_by(row, scale);
    walk.for_each_tile([&](std::int64_t column, int count) { store_tile(target, column, count); });
    walk.perform([&] { table.store_scale(target, width, 0, scale); });
  } else if constexpr (sharers != 0) {
    walk.for_each_tile([&](std::int64_t column, int count) {
      const auto& tile = tile_at(column, count);
      float value[Tile::elements];
      load(value, tile, count);
      const auto scale = table.scale_of(walk.template bounds_among<block_bounds, sharers>(value));
      const auto target = table.scaled_by(row, scale);
      store(target, tile, column, count);
      if (column % block == 0) table.store_scale(target, width, column / block, scale);
    });
  } else {
    for (std::int64_t number = walk.lane(); number * block < width; number += walk.lanes()) {
      const std::int64_t first = number * block, end = first + block;
      block_bounds::side_by_side bounds;
      for_each_tile_between<Tile>(first, end, [&](std::int64_t column, int count) {
        float value[Tile::elements];
        load(value, tile_at(column, count), count);
        bounds.widen(value, live<Tile>(count));
      });
      const auto scale = table.scale_of(bounds.whole());
      const auto target = table.scaled_by(row, scale);
      for_each_tile_between<Tile>(first, end,
                                  [&](std::int64_t column, int count) { store_tile(target, column, count); });
      table.store_scale(target, width, number, scale);
    }
  }
}

}  // namespace ferry::kernels
