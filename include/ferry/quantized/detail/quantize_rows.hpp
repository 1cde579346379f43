// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/quantized/detail/rowwise_int8_code.hpp>
#include <ferry/rows/detail/row_range.hpp>
#include <ferry/rows/detail/row_sums.hpp>
#include <ferry/rows/detail/row_walk.hpp>
#include <ferry/rows/detail/tile.hpp>
#include <ferry/runtime/detail/report.hpp>
#include <ferry/tensor/detail/numeric.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>

namespace ferry::kernels {

/// record source.position(p) = row source.row(p) of the values in 8 bits, for each position p that has one.
/// Elements are rounded to float first. See rowwise_int8_code for the formula.
///
/// Device mapping, by teams: the vector lanes of one thread share a row, see lane_walk. A row of one tile a
/// lane is read once: of up to 256 elements in tiles of eight, of which a lane's other instructions serve
/// twice as many as in tiles of four. A longer row is read twice, for its range and for its codes.
/// Host mapping: one iteration per row, which is read twice.
template <class Value, class Source, class Tile>
struct quantize_rows {
  const Value* values;
  std::int64_t values_stride;
  std::int64_t width;
  std::byte* records;
  std::int64_t record_bytes;
  std::int64_t rows;
  Source source;

  static constexpr bool takes_teams = true;  ///< on a device, see schedule
  static constexpr bool teams_stay = true;
  static constexpr int flat_teams = 5;
  static constexpr bool has_wide_tiles = !Tile::host && Tile::elements > row_sum_order::lane_width;

  /// Vector lanes per row.
  [[nodiscard]] int lanes() const {
    return lanes_for(has_wide_tiles ? width / (Tile::elements / row_sum_order::lane_width) : width);
  }
  /// Bytes of a row, which a host reads twice.
  [[nodiscard]] std::int64_t bytes_each() const {
    return width * static_cast<std::int64_t>(2 * sizeof(Value) + 1);
  }

  KOKKOS_FUNCTION void operator()([[maybe_unused]] std::int64_t position) const {
    KOKKOS_IF_ON_HOST((const std::int64_t row = source.row(position, false);
                       if (row >= 0) quantize(source.position(position), row);))
  }

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const std::int64_t size = team.team_size();
    const lane_walk<float, Tile, Member> walk(team, width);
    for (std::int64_t position = team.league_rank() * size + team.team_rank(); position < rows;
         position += team.league_size() * size) {
      const std::int64_t row = source.row(position, false);
      if (row < 0) continue;
      const std::int64_t record = source.position(position);
      if constexpr (has_wide_tiles) {
        quantize_by<true>(walk.over_one_tile(), record, row);
      } else {
        if (walk.in_one_tile())
          quantize_by<true>(walk.over_one_tile(), record, row);
        else
          quantize_by<false>(walk, record, row);
      }
    }
  }

 private:
  /// Not inlined, so that it has all registers.
  [[gnu::noinline]] void quantize(std::int64_t number, std::int64_t row) const {
    const Value* row_values = values + row * values_stride;
    std::byte* record = records + number * record_bytes;
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

  template <class Part>
  KOKKOS_FORCEINLINE_FUNCTION static void encode(const rowwise_int8_code& code, const Value* row_elements,
                                                 std::byte* target, int count) {
    float value[Part::elements];
    std::uint8_t codes[Part::elements];
    load_tile<Part>(value, row_elements, count);
    code.template encode_tile<Part>(codes, count,
                                    [&](const auto& steps, int e) { return steps.nearest(value[e]); });
    store_tile<Part>(codes, reinterpret_cast<std::uint8_t*>(target), count);
  }

  /// By the lanes of a walk. Kept: each lane keeps its tile of the row.
  template <bool Kept, class Walk>
  KOKKOS_FORCEINLINE_FUNCTION void quantize_by(const Walk& walk, std::int64_t number,
                                               std::int64_t row) const {
    const Value* const elements = values + row * values_stride;
    std::byte* const record = records + number * record_bytes;
    float numbers[Tile::elements];
    const auto range = walk.range([&](std::int64_t column, int count, float(&value)[Tile::elements]) {
      load_tile<Tile>(numbers, elements + column, count);
      for (int e = 0; e < Tile::elements; ++e) value[e] = numbers[e];
    });
    const auto code = rowwise_int8_code::of(range.min_val, range.max_val);
    walk.visit_tiles([&](std::int64_t column, int count) {
      std::uint8_t codes[Tile::elements];
      if constexpr (!Kept) load_tile<Tile>(numbers, elements + column, count);
      code.template encode_tile<Tile>(codes, count,
                                      [&](const auto& steps, int e) { return steps.nearest(numbers[e]); });
      store_tile<Tile>(codes, reinterpret_cast<std::uint8_t*>(record) + column, count);
    });
    if (walk.is_first_lane()) code.store(record, width, record_bytes);
  }
};

/// The positions whose values are encoded, and the record of each.
///
/// By a plan: of each row the first position or the last one. Without a plan: all positions. Into a table:
/// the record of a position is that of its row, and a batch that was found faulty writes none. Without a
/// table: its numbers.
struct deciding_positions {
  const std::int64_t* inverse = nullptr;
  const std::int64_t* segment_begin = nullptr;
  const std::int64_t* order = nullptr;
  bool last = false;
  const std::int64_t* value_rows = nullptr;  ///< row of the values for each place of `order`; null: `order`
  const std::int64_t* table_rows = nullptr;  ///< row of each position, -1 if it has none; null: no table
  const ferry::detail::index_report* findings = nullptr;  ///< null: indices are not checked
  const ferry::detail::index_report* repeats = nullptr;   ///< null: duplicates are not checked

  /// The row of the values of a position, -1 if the position decides nothing.
  KOKKOS_FUNCTION std::int64_t row(std::int64_t position, bool) const {
    const std::int64_t record = this->position(position);  // loaded next to the findings
    if ((findings != nullptr && findings->out_of_range != 0) ||
        (repeats != nullptr && repeats->duplicates != 0) || record < 0)
      return -1;
    if (inverse == nullptr) return position;
    const std::int64_t segment = inverse[position];
    if (segment < 0) return -1;
    const std::int64_t place = last ? segment_begin[segment + 1] - 1 : segment_begin[segment];
    if (order[place] != position) return -1;
    return value_rows == nullptr ? position : value_rows[place];
  }
  /// Its record.
  KOKKOS_FUNCTION std::int64_t position(std::int64_t position) const {
    return table_rows == nullptr ? position : table_rows[position];
  }
};

}  // namespace ferry::kernels
