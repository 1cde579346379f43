// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/quantized/detail/block_bounds.hpp>
#include <ferry/quantized/detail/coded_memory.hpp>
#include <ferry/quantized/quantization.hpp>
#include <ferry/rows/detail/row_walk.hpp>
#include <ferry/rows/detail/tile.hpp>
#include <ferry/runtime/detail/report.hpp>
#include <ferry/tensor/detail/numeric.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ferry::kernels {

/// The positions whose values are encoded. By a plan: of each row the first position or the last one. Without
/// a plan: all positions.
struct deciding_positions {
  const std::int64_t* inverse = nullptr;
  const std::int64_t* segment_begin = nullptr;
  const std::int64_t* order = nullptr;
  bool last = false;
  const std::int64_t* value_rows = nullptr;  ///< row of the values for each entry of `order`; null: `order`

  /// The row of the values of a position, -1 if the position decides nothing.
  KOKKOS_FUNCTION std::int64_t row(std::int64_t position, bool) const {
    if (inverse == nullptr) return position;
    const std::int64_t segment = inverse[position];
    if (segment < 0) return -1;
    const std::int64_t entry = last ? segment_begin[segment + 1] - 1 : segment_begin[segment];
    if (order[entry] != position) return -1;
    return value_rows == nullptr ? position : value_rows[entry];
  }
  KOKKOS_FUNCTION static std::int64_t position(std::int64_t position) { return position; }
};

/// Codes and scales of row source.position(p) = those of row source.row(p) of the values, for each position p
/// that the source names. Numbers are rounded to float first.
///
/// Device mapping, by teams: the vector lanes of one thread share a row, a tile of each at a time. The lanes
/// that have a block find its range by shuffles, and encode it from their registers. If the row is one block
/// and lanes have several tiles, they are read twice. Blocks that lanes can't share, and codes of rows
/// without packets that cross bytes, are encoded by single lanes. Host mapping: one iteration per row, whose
/// blocks are read twice.
template <class Q, class Value, class Source, class Tile>
struct encode_rows {
  using step_type = typename Q::step_type;
  static constexpr int bits = Q::code_bits;

  const Value* values;
  std::int64_t values_stride;
  std::int64_t width;
  std::byte* codes;
  std::int64_t row_bytes;  ///< of codes, or of a record
  typename Q::scale_type* scales;
  std::int64_t blocks;  ///< of a row
  float tensor_scale;
  std::int64_t rows;
  Source source;

  static constexpr bool takes_teams = true;  ///< on a device, see schedule
  static constexpr bool teams_stay = true;
  static constexpr int flat_teams = 5;
  static constexpr bool has_wide_tiles = !Tile::host && Tile::elements > row_sum_order::lane_width;
  static constexpr int sharers = sharing_lanes<Tile, Q::block>;

  /// Vector lanes per row.
  [[nodiscard]] int lanes() const {
    return lanes_for(has_wide_tiles ? width / (Tile::elements / row_sum_order::lane_width) : width);
  }
  /// Bytes of a row, which a host reads twice.
  [[nodiscard]] std::int64_t bytes_each() const {
    return width * static_cast<std::int64_t>(2 * sizeof(Value) + 1);
  }

  KOKKOS_FUNCTION void operator()(std::int64_t position) const {
    const std::int64_t row = source.row(position, false);
    if (row >= 0) encode_alone(values + row * values_stride, source.position(position), 0, 1);
  }

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const std::int64_t size = team.team_size();
    const lane_walk<float, Tile, Member> walk(team, width);
    for (std::int64_t position = team.league_rank() * size + team.team_rank(); position < rows;
         position += team.league_size() * size) {
      const std::int64_t row = source.row(position, false);
      if (row < 0) continue;
      const Value* const numbers = values + row * values_stride;
      const std::int64_t target = source.position(position);
      if constexpr (Q::block != 0 && sharers != 0)
        encode_blocks(walk, numbers, target);
      else if constexpr (Q::block != 0 || (Tile::elements == 1 && bits != 8))
        encode_alone(numbers, target, walk.lane(), walk.lanes());
      else if (walk.in_one_tile())
        encode_row<true>(walk.over_one_tile(), numbers, target);
      else
        encode_row<false>(walk, numbers, target);
    }
  }

 private:
  using encoder = ferry::detail::encoder_of<Q>;

  KOKKOS_FORCEINLINE_FUNCTION std::byte* codes_at(std::int64_t target, std::int64_t column) const {
    return codes + target * row_bytes + column * bits / 8;
  }
  KOKKOS_FORCEINLINE_FUNCTION void store_scale(const typename Q::scale_type& scale, std::int64_t target,
                                               [[maybe_unused]] std::int64_t block) const {
    if constexpr (Q::in_records)
      scale.store(codes_at(target, width), row_bytes - width);
    else if constexpr (has_scales<Q>)
      scales[target * blocks + block] = scale;
  }
  KOKKOS_FORCEINLINE_FUNCTION typename Q::scale_type scale_of(const block_bounds::values& bounds) const {
    return Q::scale_of({bounds.min_val, bounds.max_val}, tensor_scale);
  }
  KOKKOS_FORCEINLINE_FUNCTION static void store_codes(const float (&value)[Tile::elements],
                                                      const step_type& step, const encoder& by_fours,
                                                      std::byte* target) {
    if constexpr (Tile::elements == 1)
      *target = static_cast<std::byte>(Q::encode(value[0], step));
    else
      put_codes<bits, Tile::elements>(target, [&](int first) {
        return four_codes<Q>({value[first], value[first + 1], value[first + 2], value[first + 3]}, step,
                             by_fours);
      });
  }

  /// Blocks of several lanes, each of its own tile.
  template <class Walk>
  KOKKOS_FORCEINLINE_FUNCTION void encode_blocks(const Walk& walk, const Value* numbers,
                                                 std::int64_t target) const {
    walk.visit_tiles([&](std::int64_t column, int count) {
      float value[Tile::elements];
      load_tile<Tile>(value, numbers + column, count);
      const auto scale = scale_of(walk.template bounds_among<block_bounds, sharers>(value));
      const auto step = Q::step_of(scale, tensor_scale);
      store_codes(value, step, encoder(step), codes_at(target, column));
      if (column % Q::block == 0) store_scale(scale, target, column / Q::block);
    });
  }

  /// A block that is the row. Kept: each lane keeps its tile.
  template <bool Kept, class Walk>
  KOKKOS_FORCEINLINE_FUNCTION void encode_row(const Walk& walk, const Value* numbers,
                                              std::int64_t target) const {
    float value[Tile::elements];
    typename Q::scale_type scale{};
    if constexpr (has_scales<Q>)
      scale =
          scale_of(walk.template bounds<block_bounds>([&](std::int64_t column, int count, auto& measured) {
            load_tile<Tile>(value, numbers + column, count);
            for (int e = 0; e < Tile::elements; ++e) measured[e] = value[e];
          }));
    const auto step = Q::step_of(scale, tensor_scale);
    const encoder by_fours(step);
    walk.visit_tiles([&](std::int64_t column, int count) {
      if constexpr (!Kept || !has_scales<Q>) load_tile<Tile>(value, numbers + column, count);
      store_codes(value, step, by_fours, codes_at(target, column));
    });
    if (walk.is_first_lane()) store_scale(scale, target, 0);
  }

  /// One thread has every `step`th block of the row.
  KOKKOS_FUNCTION void encode_alone(const Value* numbers, std::int64_t target, std::int64_t first_block,
                                    std::int64_t distance) const {
    const std::int64_t count = Q::block == 0 ? width : Q::block;
    for (std::int64_t block = first_block; block * count < width; block += distance) {
      const Value* const begin = numbers + block * count;
      std::byte* const block_codes = codes_at(target, block * count);
      typename Q::scale_type scale{};
      if constexpr (has_scales<Q>) {
        block_bounds::side_by_side bounds;
        bounds.widen(begin, count);
        scale = scale_of(bounds.whole());
      }
      const auto step = Q::step_of(scale, tensor_scale);
      std::int64_t e = 0;
      for (; e + part <= count; e += part)
        encode_part<true>(begin + e, part, step, block_codes + e * bits / 8);
      if (e < count) encode_part<false>(begin + e, count - e, step, block_codes + e * bits / 8);
      store_scale(scale, target, block);
    }
  }
  static constexpr int part = 16;  ///< numbers that a compiler vectorises
  template <bool Whole>
  KOKKOS_FORCEINLINE_FUNCTION static void encode_part(const Value* numbers, std::int64_t count,
                                                      const step_type& step, std::byte* target) {
    float value[part];
    std::uint32_t code[part];
    std::byte bytes[part * bits / 8] = {};
    for (int e = 0; e < part; ++e) value[e] = Whole || e < count ? convert<float>(numbers[e]) : 0.0f;
    for (int e = 0; e < part; ++e) code[e] = Q::encode(value[e], step);
    for (int e = 0; e < part; ++e) put_code<bits>(bytes, e, Whole || e < count ? code[e] : 0u);
    if constexpr (Whole) {
      std::memcpy(target, bytes, sizeof bytes);
    } else {
      for (int b = 0; b < part * bits / 8; ++b)
        if (std::int64_t{b} * 8 < count * bits) target[b] = bytes[b];
    }
  }
};

}  // namespace ferry::kernels
