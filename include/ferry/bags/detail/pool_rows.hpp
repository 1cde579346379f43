// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/detail/bag_list.hpp>
#include <ferry/bags/detail/bag_terms.hpp>
#include <ferry/rows/detail/tile.hpp>
#include <ferry/runtime/detail/launch.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>
#include <type_traits>

namespace ferry::kernels {

/// True if a tile of a table is decoded by a scale of its own.
template <class Table>
inline constexpr bool keeps_scales = requires {
  requires Table::keeps_scales;
};

/// out[b] = the rows of bag b, pooled in the order that bag_terms has.
///
/// Device mapping: one thread per (bag, tile), row-major, so the threads of a warp read neighbouring
/// packets of the same rows. A thread issues the loads of four or five rows before it adds the first of them:
/// with more, registers would leave room for fewer threads (H200). 8-bit rows stay encoded until they are
/// added. The additions stay in order. All threads of a bag read the same indices, which the first level of
/// cache serves. What few bags need has a path of its own, see pool_few. There the threads of one row pool
/// bags of any length. They list long ones for pool_long_bags, or add the pieces themselves.
///
/// Host mapping: one run of neighbouring bags per thread. Rows of later positions are prefetched.
template <class Compute, class Pooling, class Table, class Source, class Offset, class Weight, class Out,
          class Chosen>
struct pool_rows {
  static constexpr unsigned int most_threads = 256;  ///< of a block, see launch
  static constexpr bool takes_runs = true;           ///< on a host, see launch

  using terms_type = bag_terms<Compute, Pooling::selects, Table, Source, Weight, Chosen>;
  /// True if packets of eight elements pay: of 16-bit numbers, and of 8-bit records that stay encoded.
  static constexpr bool has_wide_tiles =
      sizeof(Out) <= 4 && (Table::element_bytes == 2 || terms_type::template keeps_codes<wide_packed_tile>);
  /// See launch: 40 registers; else 48, or 64 for eight sums.
  static constexpr unsigned int blocks_at_once =
      terms_type::is_lean                                                    ? 6
      : (has_wide_tiles && Table::element_bytes == 2) || keeps_scales<Table> ? 4
                                                                             : 5;

  using compute_type = Compute;

  terms_type terms;
  bag_list<Offset> bags;
  Out* out;
  std::int64_t out_stride;
  Chosen* chosen;
  std::int64_t chosen_stride;
  detail::fast_divisor tiles;
  bool packed;                 ///< true if a tile is a packet
  bool wide;                   ///< true if it is a wide one
  bool strict;                 ///< true if a bag with a position without a row keeps its contents
  bool has_rows;               ///< true if the table has any
  std::int64_t* changed_rows;  ///< null, or for bag b: b, or -1 if it keeps its contents
  long_bag_list list = {};
  /// Bags of fewer positions are pooled by add_few; 0 if add_few can't serve this table or changed_rows.
  std::int64_t short_length = 0;

  /// Bytes that a bag of average size reads and writes.
  [[nodiscard]] std::int64_t bytes_each() const {
    return (bags.bags > 0 ? bags.positions / bags.bags + 1 : 1) * terms.row_bytes() +
           terms.width * static_cast<std::int64_t>(sizeof(Out));
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
    for (std::int64_t bag = run.begin(bags.bags); bag < end; ++bag) {
      const bag_range range = bags.range(bag, true);
      if (!leaves(bag, range, true)) all_of(bag, range);
    }
  }

  /// A whole bag, on a host.
  void all_of(std::int64_t bag, const bag_range& range) const {
    constexpr int most = host_tile::elements;
    bool keeps = false;
    std::int64_t column = 0;
    for (; column + most <= terms.width; column += most)
      keeps = pool<whole_host_tile<most>>(bag, range, column, most);
    if (column < terms.width)
      keeps = pool<host_tile>(bag, range, column, static_cast<int>(terms.width - column));
    finish_bag(bag, range, keeps);
  }

  /// A tile of a bag, on a device.
  template <class Tile>
  KOKKOS_FORCEINLINE_FUNCTION void part_of(std::int64_t bag, const bag_range& range,
                                           std::int64_t column) const {
    const bool keeps = pool<Tile>(bag, range, column, Tile::elements);
    if (column == 0) finish_bag(bag, range, keeps);
  }

  template <class Tile>
  using pooled = typename terms_type::template pooled<Tile>;

  /// Ends what part_of begins, or all_of for a tile, with the sum of the bag.
  template <class Tile>
  KOKKOS_FORCEINLINE_FUNCTION void finish_tile(pooled<Tile>& sum, std::int64_t bag, const bag_range& range,
                                               std::int64_t column, int count) const {
    const bool keeps = store<Tile>(sum, bag, range, column, count);
    if (column == 0) finish_bag(bag, range, keeps);
  }

 private:
  template <class Tile>
  KOKKOS_FORCEINLINE_FUNCTION void pool_item(std::int64_t i) const {
    const std::int64_t bag = tiles.quotient(i);
    const auto tile = static_cast<std::uint32_t>(i) -
                      static_cast<std::uint32_t>(bag) * static_cast<std::uint32_t>(tiles.divisor());
    const std::int64_t column = std::int64_t{tile} * Tile::elements;
    pool_few<Tile>(bag, column);
  }

  /// A tile of a bag, by add_few if it can serve the bag.
  template <class Tile>
  KOKKOS_FORCEINLINE_FUNCTION void pool_few(std::int64_t bag, std::int64_t column) const {
    const bag_range range = bags.span(bag);
    std::int64_t rows = 0;
    if (bags.has_few(range, short_length)) {
      const int size = static_cast<int>(range.end - range.begin);
      pooled<Tile> sum(Tile::elements);
      if (terms.template add_few<Tile>(sum, range.begin, size, column, Tile::elements) &&
          !(may_miss<Source> && strict && sum.misses_row))
        return deliver<Tile>(sum, bag, size, column, Tile::elements);
      rows = sum.rows;
    }
    pool_few<Tile>(bag, column, rows);
  }

  /// A tile of a bag that is long, has bad offsets, misses a row or has codes that need more than float. Its
  /// location passes through memory, and what follows has registers of its own: else the threads of other
  /// bags would lack them. So do the `rows` that add_few has counted, which nobody reads: see bag_terms::add.
  template <class Tile>
  KOKKOS_FORCEINLINE_FUNCTION void pool_few(std::int64_t number, std::int64_t first,
                                            std::int64_t rows) const {
    const volatile std::int64_t location[3] = {number, first, rows};
    const std::int64_t bag = location[0], column = location[1];
    const bag_range range = bags.range(bag, column == 0);
    if (!leaves(bag, range, column == 0)) part_of<Tile>(bag, range, column);
  }

  /// True if the bag is pooled by another launch. `first`: this thread lists it.
  KOKKOS_FORCEINLINE_FUNCTION bool leaves([[maybe_unused]] std::int64_t bag,
                                          [[maybe_unused]] const bag_range& range,
                                          [[maybe_unused]] bool first) const {
    if constexpr (Pooling::selects) {
      return false;
    } else {
      if (!list.takes(range)) return false;
      if (first) list.add(bag, range);
      return true;
    }
  }

  /// Once per bag: says whether it keeps its contents, and reports its bad indices, in a walk of its own that
  /// costs the others no registers.
  KOKKOS_FORCEINLINE_FUNCTION void finish_bag(std::int64_t bag, const bag_range& range, bool keeps) const {
    if (changed_rows != nullptr) changed_rows[bag] = keeps ? -1 : bag;
    if constexpr (may_miss<Source>)
      if (keeps && range.is_good)
        for (std::int64_t k = range.begin; k < range.end; ++k) terms.source.row(k, true);
  }

  /// Pools a tile of the bag and stores it. Returns whether the bag keeps its contents.
  template <class Tile>
  KOKKOS_FORCEINLINE_FUNCTION bool pool(std::int64_t bag, const bag_range& range, std::int64_t column,
                                        int count) const {
    if (!range.is_good) return true;
    pooled<Tile> sum(count);
    if (!has_rows)
      sum.misses_row |= range.begin < range.end;
    else
      terms.template add_bag<Tile>(sum, range, column, count);
    return store<Tile>(sum, bag, range, column, count);
  }

  /// Stores a tile of the pooled row. Returns whether the bag keeps its contents.
  template <class Tile>
  KOKKOS_FORCEINLINE_FUNCTION bool store(pooled<Tile>& sum, std::int64_t bag, const bag_range& range,
                                         std::int64_t column, int count) const {
    if (may_miss<Source> && strict && sum.misses_row) return true;
    deliver<Tile>(sum, bag, range.end - range.begin, column, count);
    return false;
  }
  /// Stores a tile of the pooled row of a bag with `size` positions.
  template <class Tile, class Size>
  KOKKOS_FORCEINLINE_FUNCTION void deliver(pooled<Tile>& sum, std::int64_t bag, [[maybe_unused]] Size size,
                                           std::int64_t column, int count) const {
    if constexpr (Pooling::divides) {
      const auto rows = terms_type::may_skip ? static_cast<Size>(sum.rows) : size;
      if (rows > 0)
        for (int e = 0; e < live<Tile>(count); ++e) sum.value[e] /= static_cast<Compute>(rows);
    }
    if constexpr (Pooling::selects)
      store_tile<Tile>(sum.value, out + bag * out_stride + column, count);
    else
      store_results<Tile>(sum.value, out + bag * out_stride + column, count);
    if constexpr (!std::is_void_v<Chosen>)
      for (int e = 0; e < live<Tile>(count); ++e)
        chosen[bag * chosen_stride + column + e] = static_cast<Chosen>(sum.origin[e]);
  }
};

}  // namespace ferry::kernels
