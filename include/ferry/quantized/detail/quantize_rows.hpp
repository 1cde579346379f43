// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/quantized/detail/rowwise_int8_code.hpp>
#include <ferry/rows/detail/packet.hpp>
#include <ferry/rows/detail/row_range.hpp>
#include <ferry/rows/detail/tile.hpp>
#include <ferry/tensor/detail/numeric.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>

namespace ferry::kernels {

/// record[p] = the values of position p in 8 bits, row source.row(p), for each position that the source
/// names. Elements are rounded to float first. See rowwise_int8_code for the formula.
///
/// Both mappings read a row twice, for its range and for its codes. The second read comes from the first
/// level of cache.
///
/// Device mapping, by teams: the vector lanes of one thread share a row, 4 elements at a time, and reduce its
/// range by shuffles. Neighbouring lanes read neighbouring bytes, and only the lanes of one row synchronise.
/// A row has one lane per packet, up to a warp: one lane for rows of 4 elements, a warp for 128 and more.
/// Host mapping: one iteration per row.
template <class Value, class Source>
struct quantize_rows {
  static constexpr std::int64_t tile = packed_tile::elements;
  using range = row_range::values;

  const Value* values;
  std::int64_t values_stride;
  std::int64_t width;
  std::byte* records;
  std::int64_t record_bytes;
  std::int64_t rows;
  bool packed;  ///< every row of values consists of packets
  Source source;

  /// Bytes of a row, which is read twice.
  [[nodiscard]] std::int64_t bytes_each() const {
    return width * static_cast<std::int64_t>(2 * sizeof(Value) + 1);
  }

  KOKKOS_FUNCTION void operator()([[maybe_unused]] std::int64_t position) const {
    KOKKOS_IF_ON_HOST(
        (const std::int64_t row = source.row(position, false); if (row >= 0) quantize(position, row);))
  }

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const std::int64_t threads = team.team_size();
    const std::int64_t tiles = (width + tile - 1) / tile;
    for (std::int64_t position = team.league_rank() * threads + team.team_rank(); position < rows;
         position += team.league_size() * threads) {
      const std::int64_t row = source.row(position, false);
      if (row < 0) continue;
      const Value* row_values = values + row * values_stride;
      std::byte* record = records + position * record_bytes;
      range whole = row_range::nothing();
      Kokkos::parallel_reduce(
          Kokkos::ThreadVectorRange(team, tiles),
          [&](const std::int64_t t, range& part) {
            float value[tile];
            const int count = load(value, row_values, t);
            for (int e = 0; e < tile; ++e)
              if (e < count) row_range::widen(part, value[e]);
          },
          row_range::reducer(whole));
      const auto code = rowwise_int8_code::of(whole.min_val, whole.max_val);
      Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, tiles), [&](const std::int64_t t) {
        float value[tile];
        const int count = load(value, row_values, t);
        packet<std::uint8_t, tile> codes{};
        if (code.has_steps()) {
          const auto steps = code.by_steps();
          for (int e = 0; e < tile; ++e)
            if (e < count) codes.value[e] = steps.nearest(value[e]);
        }
        auto* bytes = reinterpret_cast<std::uint8_t*>(record) + t * tile;
        if (count == tile)
          store_packet(bytes, codes);
        else
          for (int e = 0; e < count; ++e) bytes[e] = codes.value[e];
      });
      Kokkos::single(Kokkos::PerThread(team), [&] { code.store(record, width, record_bytes); });
    }
  }

 private:
  /// Not inlined, so that it has all registers.
  [[gnu::noinline]] void quantize(std::int64_t position, std::int64_t row) const {
    const Value* row_values = values + row * values_stride;
    std::byte* record = records + position * record_bytes;
    row_range::side_by_side ranges;
    ranges.widen(row_values, width);
    const auto whole = ranges.whole();
    const auto code = rowwise_int8_code::of(whole.min_val, whole.max_val);
    constexpr int most = host_tile::elements;
    std::int64_t column = 0;
    for (; column + most <= width; column += most)
      encode<whole_host_tile<most>>(code, row_values + column, record + column, most);
    if (column < width)
      encode<host_tile>(code, row_values + column, record + column, static_cast<int>(width - column));
    code.store(record, width, record_bytes);
  }

  template <class Tile>
  KOKKOS_FORCEINLINE_FUNCTION static void encode(const rowwise_int8_code& code, const Value* row_elements,
                                                 std::byte* target, int count) {
    float value[Tile::elements];
    std::uint8_t codes[Tile::elements];
    load_tile<Tile>(value, row_elements, count);
    code.template encode_tile<Tile>(codes, count,
                                    [&](const auto& steps, int e) { return steps.nearest(value[e]); });
    store_tile<Tile>(codes, reinterpret_cast<std::uint8_t*>(target), count);
  }

  KOKKOS_FORCEINLINE_FUNCTION int load(float (&value)[tile], const Value* row_values, std::int64_t t) const {
    const std::int64_t left = width - t * tile;
    const int count = static_cast<int>(left < tile ? left : tile);
    if (packed)
      load_tile<packed_tile>(value, row_values + t * tile, count);
    else
      for (int e = 0; e < tile; ++e)
        if (e < count) value[e] = convert<float>(row_values[t * tile + e]);
    return count;
  }
};

/// The position that a plan's duplicates policy selects for each row, first or last; all positions without a
/// plan.
struct deciding_positions {
  const std::int64_t* inverse = nullptr;
  const std::int64_t* segment_begin = nullptr;
  const std::int64_t* order = nullptr;
  bool last = false;
  const std::int64_t* value_rows = nullptr;  ///< row of the values for each place of `order`; null: `order`

  /// The row of the values of a position, -1 if the position decides nothing.
  KOKKOS_FUNCTION std::int64_t row(std::int64_t position, bool) const {
    if (inverse == nullptr) return position;
    const std::int64_t segment = inverse[position];
    if (segment < 0) return -1;
    const std::int64_t place = last ? segment_begin[segment + 1] - 1 : segment_begin[segment];
    if (order[place] != position) return -1;
    return value_rows == nullptr ? position : value_rows[place];
  }
};

}  // namespace ferry::kernels
