// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/detail/bag_list.hpp>
#include <ferry/plan/detail/row_source.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/rows/detail/prefetch.hpp>
#include <ferry/rows/detail/tile.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/tensor/detail/numeric.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>
#include <type_traits>

namespace ferry::kernels {

/// True if a source may have no row for a position.
template <class Source>
inline constexpr bool may_miss = true;
template <class Index>
inline constexpr bool may_miss<index_rows<Index, bounds::unchecked>> = false;
template <class Index>
inline constexpr bool may_miss<index_rows<Index, bounds::clamp>> = false;

/// True if a bag with such a position always keeps its contents, so that its sum does not matter.
template <class Source>
inline constexpr bool always_strict = false;
template <class Index, class Bounds>
inline constexpr bool always_strict<index_rows<Index, Bounds>> = Bounds::reports;

/// out[b] = the rows of bag b, pooled in the order of its positions. `Weight` is void where positions have no
/// weights, `Chosen` is void where nobody wants to know the position of each maximum.
///
/// Device mapping: one thread per (bag, tile), row-major, so the threads of a warp read neighbouring
/// packets of the same rows. A thread issues the loads of four rows before it adds the first: with more,
/// registers would leave room for fewer threads (H200). The additions stay in order. All threads of a bag
/// read the same indices, which the first level of cache serves. Bags of any length are pooled by the
/// threads of one row, so the order of additions depends on the bag alone.
///
/// Host mapping: one run of neighbouring bags per thread. Rows of later positions are prefetched.
template <class Compute, class Pooling, class Table, class Source, class Offset, class Weight, class Out,
          class Chosen>
struct pool_rows {
  static constexpr unsigned int most_threads = 256;  ///< of a block, see launch
  static constexpr bool takes_runs = true;           ///< on a host, see launch

  /// True if packets of eight elements pay: of 16-bit numbers, in sums.
  static constexpr bool has_wide_tiles = Table::element_bytes == 2 && sizeof(Out) <= 4;
  /// See launch: four rows in flight need 48 registers, 64 in packets of eight.
  static constexpr unsigned int blocks_at_once = has_wide_tiles ? 4 : 5;

  Table table;
  Source source;
  bag_list<Offset> bags;
  const Weight* weights;
  Out* out;
  std::int64_t out_stride;
  Chosen* chosen;
  std::int64_t chosen_stride;
  std::int64_t width;
  detail::fast_divisor tiles;
  bool packed;                 ///< true if a tile is a packet
  bool wide;                   ///< true if it is a wide one
  bool strict;                 ///< true if a bag with a position without a row keeps its contents
  bool has_rows;               ///< true if the table has any
  std::int64_t* changed_rows;  ///< null, or for bag b: b, or -1 if it keeps its contents

  /// Of a bag of average size.
  [[nodiscard]] std::int64_t bytes_each() const {
    return (bags.bags > 0 ? bags.positions / bags.bags + 1 : 1) * row_bytes() +
           width * static_cast<std::int64_t>(sizeof(Out));
  }

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    if constexpr (has_wide_tiles)
      if (wide) return pool_item<wide_packed_tile>(i);
    if (packed)
      pool_item<packed_tile>(i);
    else
      pool_item<single_tile>(i);
  }

  void operator()(const detail::host_run& run) const {
    const std::int64_t end = run.end(bags.bags);
    for (std::int64_t bag = run.begin(bags.bags); bag < end; ++bag) all_of(bag, bags.range(bag, true));
  }

  /// A whole bag, on a host.
  void all_of(std::int64_t bag, const bag_range& range) const {
    constexpr int most = host_tile::elements;
    bool keeps = false;
    std::int64_t column = 0;
    for (; column + most <= width; column += most)
      keeps = pool<whole_host_tile<most>>(bag, range, column, most);
    if (column < width) keeps = pool<host_tile>(bag, range, column, static_cast<int>(width - column));
    finish_bag(bag, range, keeps);
  }

  /// A tile of a bag, on a device.
  template <class Tile>
  KOKKOS_FORCEINLINE_FUNCTION void part_of(std::int64_t bag, const bag_range& range,
                                           std::int64_t column) const {
    const bool keeps = pool<Tile>(bag, range, column, Tile::elements);
    if (column == 0) finish_bag(bag, range, keeps);
  }

 private:
  template <class Tile>
  KOKKOS_FORCEINLINE_FUNCTION void pool_item(std::int64_t i) const {
    const std::int64_t bag = tiles.quotient(i);
    const std::int64_t column = (i - bag * tiles.divisor()) * Tile::elements;
    part_of<Tile>(bag, bags.range(bag, column == 0), column);
  }

  /// Once per bag: says whether it keeps its contents, and reports its bad indices, in a walk of its own that
  /// costs the others no registers.
  KOKKOS_FORCEINLINE_FUNCTION void finish_bag(std::int64_t bag, const bag_range& range, bool keeps) const {
    if (changed_rows != nullptr) changed_rows[bag] = keeps ? -1 : bag;
    if constexpr (may_miss<Source>)
      if (keeps && range.is_good)
        for (std::int64_t k = range.begin; k < range.end; ++k) source.row(k, true);
  }

  template <class Tile>
  struct pooled {
    Compute value[Tile::elements];
    std::int64_t origin[Tile::elements];
    std::int64_t rows = 0;
    bool missed = false;

    KOKKOS_FORCEINLINE_FUNCTION explicit pooled(int count) {
      for (int e = 0; e < live<Tile>(count); ++e) value[e] = Compute(0);
      if constexpr (!std::is_void_v<Chosen>)
        for (int e = 0; e < live<Tile>(count); ++e) origin[e] = -1;
    }
  };

  /// Pools a tile of the bag and stores it. Returns whether the bag keeps its contents.
  template <class Tile>
  KOKKOS_FORCEINLINE_FUNCTION bool pool(std::int64_t bag, const bag_range& range, std::int64_t column,
                                        int count) const {
    if (!range.is_good) return true;
    pooled<Tile> sum(count);
    std::int64_t k = range.begin;
    if (!has_rows) {
      sum.missed = range.begin < range.end;
      k = range.end;
    }
    if constexpr (Tile::host) {
      const std::int64_t ahead = look_ahead::rows(row_bytes());
      for (; k < range.end; ++k) {
        if (column == 0 && k + ahead < bags.positions) {
          const std::int64_t later = source.row(k + ahead, false);
          if (!may_miss<Source> || later >= 0) table.prefetch(later, row_bytes());
        }
        add<1, Tile>(sum, k, column, count);
      }
    } else {
      for (; k + 4 <= range.end; k += 4) add<4, Tile>(sum, k, column, count);
      if (k < range.end) add<4, Tile, false>(sum, k, column, count, range.end);
    }
    if (may_miss<Source> && strict && sum.missed) return true;
    if constexpr (Pooling::divides) {
      const std::int64_t rows = may_skip ? sum.rows : range.end - range.begin;
      if (rows > 0)
        for (int e = 0; e < live<Tile>(count); ++e) sum.value[e] /= static_cast<Compute>(rows);
    }
    store_tile<Tile>(sum.value, out + bag * out_stride + column, count);
    if constexpr (!std::is_void_v<Chosen>)
      for (int e = 0; e < live<Tile>(count); ++e)
        chosen[bag * chosen_stride + column + e] = static_cast<Chosen>(sum.origin[e]);
    return false;
  }

  /// True if a bag's sum may leave out positions.
  static constexpr bool may_skip = (may_miss<Source> && !always_strict<Source>);

  /// Adds the rows of positions [k, k + N), or where not Whole those before `end`. All loads come before the
  /// first addition. A position without a row loads row 0, which is added only to a sum that nobody stores.
  /// Where such positions may be left out, a bit for each says which have none: the rows' numbers would
  /// occupy registers until the end.
  template <int N, class Tile, bool Whole = true>
  KOKKOS_FORCEINLINE_FUNCTION void add(pooled<Tile>& sum, std::int64_t k, std::int64_t column, int count,
                                       [[maybe_unused]] std::int64_t end = 0) const {
    const auto has = [&]([[maybe_unused]] int j) { return Whole || k + j < end; };
    constexpr bool weighs = !std::is_void_v<Weight> && !Pooling::selects;
    std::int64_t row[N] = {};
    [[maybe_unused]] Compute weight[N];
    [[maybe_unused]] unsigned int missing = 0;
    for (int j = 0; j < N; ++j)
      if (has(j)) {
        row[j] = source.row(k + j, false);
        if constexpr (may_miss<Source>)
          if (row[j] < 0) {
            if constexpr (may_skip) missing |= 1u << j;
            sum.missed = true;
            row[j] = 0;
          }
        if constexpr (weighs) weight[j] = convert<Compute>(weights[k + j]);
      }
    Compute value[N][Tile::elements];
    for (int j = 0; j < N; ++j)
      if (has(j)) table.row(row[j], width).template load<Tile>(value[j], column, count);
    for (int j = 0; j < N; ++j) {
      if (!has(j)) continue;
      if constexpr (may_skip)
        if ((missing >> j & 1u) != 0) continue;
      if constexpr (Pooling::selects) {
        for (int e = 0; e < live<Tile>(count); ++e)
          if (sum.rows == 0 || value[j][e] > sum.value[e]) {
            sum.value[e] = value[j][e];
            if constexpr (!std::is_void_v<Chosen>) sum.origin[e] = k + j;
          }
      } else if constexpr (weighs) {
        for (int e = 0; e < live<Tile>(count); ++e) sum.value[e] += weight[j] * value[j][e];
      } else {
        for (int e = 0; e < live<Tile>(count); ++e) sum.value[e] += value[j][e];
      }
      ++sum.rows;
    }
  }

  KOKKOS_FORCEINLINE_FUNCTION std::int64_t row_bytes() const { return width * table.element_bytes; }
};

}  // namespace ferry::kernels
