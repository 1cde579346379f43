// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/detail/bag_list.hpp>
#include <ferry/bags/detail/bag_pieces.hpp>
#include <ferry/bags/detail/bag_terms.hpp>
#include <ferry/rows/detail/sum_pieces.hpp>
#include <ferry/rows/detail/tile.hpp>
#include <ferry/runtime/detail/launch.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>

namespace ferry::kernels {

/// The sums of the pieces of long bags, before the bags are pooled.
///
/// Device mapping: one thread per (row of the buffer, tile), row-major. A row has at most one piece. A bag of
/// all positions has 256 pieces, whose threads need 16 rows in flight, and the indices of the next ones, to
/// read at the memory's rate.
///
/// Host mapping: one run of rows of the buffer per thread.
template <class Compute, class Table, class Source, class Offset, class Weight>
struct sum_bag_pieces {
  static constexpr unsigned int most_threads = 128;  ///< of a block, see launch
  static constexpr unsigned int blocks_at_once = 4;  ///< see launch: 128 registers
  static constexpr bool takes_runs = true;           ///< on a host, see launch

  using bag_terms_type = bag_terms<Compute, false, Table, Source, Weight, void>;
  static constexpr int under_way = sizeof(Compute) > 4 || bag_terms_type::weighs ? 8 : 16;

  bag_terms_type terms;
  bag_list<Offset> bags;
  piece_buffer<Compute> buffer;
  std::int64_t slots;
  ferry::detail::fast_divisor tiles;
  bool packed;  ///< true if a tile is a packet

  /// Bytes for a row of the buffer, if all bags are long.
  [[nodiscard]] std::int64_t bytes_each() const { return sum_pieces::least * terms.row_bytes(); }

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t slot = tiles.quotient(i);
    const std::int64_t tile = i - slot * tiles.divisor();
    const bag_piece piece = piece_of(bags, slot);
    if (packed)
      sum<packed_tile>(piece, slot, tile * packed_tile::elements, packed_tile::elements);
    else
      sum<single_tile>(piece, slot, tile, 1);
  }

  void operator()(const ferry::detail::host_run& run) const {
    constexpr int most = host_tile::elements;
    const std::int64_t end = run.end(slots);
    for (std::int64_t slot = run.begin(slots); slot < end; ++slot) {
      const bag_piece piece = piece_of(bags, slot);
      std::int64_t column = 0;
      for (; column + most <= terms.width; column += most)
        sum<whole_host_tile<most>>(piece, slot, column, most);
      if (column < terms.width) sum<host_tile>(piece, slot, column, static_cast<int>(terms.width - column));
    }
  }

 private:
  template <class Tile>
  KOKKOS_FORCEINLINE_FUNCTION void sum(const bag_piece& piece, std::int64_t slot, std::int64_t column,
                                       int count) const {
    typename bag_terms_type::template pooled<Tile> total(count);
    if (piece.bag >= 0) {
      if constexpr (Tile::host)
        terms.template add_range<Tile>(total, piece.begin, piece.end, column, count);
      else
        terms.template add_ahead<under_way, Tile>(total, piece.begin, piece.end, column, count);
      store_tile<Tile>(total.value, buffer.sums + slot * terms.width + column, count);
    }
    if (column == 0)
      buffer.notes[slot] = {piece.bag, !bag_terms_type::may_skip && total.marks.misses_row() ? 0 : total.rows,
                            -1};
  }
};

/// The sums of long bags, from those of their pieces. The sum of a bag replaces that of its first piece.
///
/// Device mapping: one thread per (row of the buffer, tile), row-major. The threads of rows in which no bag
/// begins end after three loads. The others read the second level of cache, 16 sums at once.
///
/// Host mapping: one run of rows of the buffer per thread.
template <class Compute, class Offset>
struct add_bag_pieces {
  static constexpr unsigned int most_threads = 128;  ///< of a block, see launch
  static constexpr bool takes_runs = true;           ///< on a host, see launch
  static constexpr int under_way = sizeof(Compute) > 4 ? 8 : 16;

  bag_list<Offset> bags;
  piece_buffer<Compute> buffer;
  std::int64_t slots;
  std::int64_t width;
  ferry::detail::fast_divisor tiles;
  bool packed;  ///< true if a tile is a packet

  [[nodiscard]] std::int64_t bytes_each() const { return width * static_cast<std::int64_t>(sizeof(Compute)); }

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t slot = tiles.quotient(i);
    const std::int64_t tile = i - slot * tiles.divisor();
    if (packed)
      add<packed_tile>(slot, tile * packed_tile::elements);
    else
      add<single_tile>(slot, tile);
  }

  void operator()(const ferry::detail::host_run& run) const {
    constexpr int most = host_tile::elements;
    const std::int64_t end = run.end(slots);
    for (std::int64_t slot = run.begin(slots); slot < end; ++slot) {
      std::int64_t column = 0;
      for (; column + most <= width; column += most) add<whole_host_tile<most>>(slot, column);
      for (; column < width; ++column) add<whole_host_tile<1>>(slot, column);
    }
  }

 private:
  template <class Tile>
  KOKKOS_FORCEINLINE_FUNCTION void add(std::int64_t slot, std::int64_t column) const {
    constexpr int loads = Tile::host ? 1 : under_way;
    const std::int64_t bag = buffer.notes[slot].bag;
    if (bag < 0) return;
    const bag_range range = bags.range(bag, false);
    if (long_bags::slot(range.begin) != slot) return;
    const sum_pieces cut(range.end - range.begin);
    Compute total[Tile::elements];
    for (int e = 0; e < Tile::elements; ++e) total[e] = Compute(0);
    std::int64_t rows = 0;
    bool complete = true;
    for (std::int64_t first = 0; first < cut.count; first += loads) {
      Compute next[loads][Tile::elements];
      for (int k = 0; k < loads; ++k) {
        const std::int64_t piece = first + k < cut.count ? first + k : cut.count - 1;
        const std::int64_t row = long_bags::slot(range.begin + piece * cut.size);
        if (Tile::host && buffer.notes[row].bag != bag) return;  // another thread may write to the row
        load_tile<Tile>(next[k], buffer.sums + row * width + column, Tile::elements);
        complete = complete && buffer.notes[row].bag == bag;
        rows += first + k < cut.count ? buffer.notes[row].rows : 0;
      }
      for (int k = 0; k < loads; ++k)
        if (first + k < cut.count)
          for (int e = 0; e < Tile::elements; ++e) total[e] += next[k][e];
    }
    if (!complete) return;
    store_tile<Tile>(total, buffer.sums + slot * width + column, Tile::elements);
    if (column == 0) buffer.notes[slot].bag_rows = rows;
  }
};

}  // namespace ferry::kernels
