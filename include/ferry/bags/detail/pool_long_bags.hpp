// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/detail/bag_list.hpp>
#include <ferry/bags/detail/long_bag_list.hpp>
#include <ferry/rows/detail/sum_pieces.hpp>
#include <ferry/rows/detail/tile.hpp>
#include <ferry/runtime/detail/launch.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace ferry::kernels {

/// Pools the bags that a launch of `Pool` has listed. No thread waits for another one: the last of the
/// threads that sum pieces of a group of tiles adds their sums in order and stores the tiles.
///
/// Device mapping: a fixed number of threads, which end at once if no bag is listed, walk over (piece, tile),
/// row-major, a warp over 32 neighbours. Neighbouring warps take items far apart, so that few pieces occupy
/// all multiprocessors. As in sum_bag_pieces 16 rows are in flight.
template <class Compute, class Pool>
struct pool_long_bags {
  static constexpr unsigned int most_threads = 128;  ///< of a block, see launch
  static constexpr unsigned int blocks_at_once = 4;  ///< see launch: 128 registers

  /// The number of threads is a multiple of the size of a block.
  static constexpr std::int64_t warp = 32, warps = most_threads / warp;

  using terms_type = typename Pool::terms_type;
  static constexpr int under_way = sizeof(Compute) > 4 || terms_type::weighs ? 8 : 16;

  Pool pool;
  Compute* sums;  ///< a row for each piece
  ferry::detail::fast_divisor tiles;
  bool packed;  ///< true if a tile is a packet
  std::int64_t threads;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const listed_counts listed = pool.list.counts();
    if (listed.bags == 0) return;
    if (pool.list.exceeds(listed)) return pool_alone(i);
    const std::int64_t number = i / warp;
    const std::int64_t place = number % warps * (threads / most_threads) + number / warps;
    for (std::int64_t item = place * warp + i % warp; item < listed.pieces * tiles.divisor();
         item += threads) {
      if (packed)
        share<packed_tile>(item, listed.bags);
      else
        share<single_tile>(item, listed.bags);
    }
  }

 private:
  /// A piece in a tile.
  template <class Tile>
  struct work_item {
    std::int64_t piece, tile, place;
    listed_bag bag;
    sum_pieces cut;

    KOKKOS_FORCEINLINE_FUNCTION work_item(const pool_long_bags& kernel, std::int64_t item, std::int64_t count)
        : piece(kernel.tiles.quotient(item)),
          tile(item - piece * kernel.tiles.divisor()),
          place(kernel.pool.list.place_of(piece, count)),
          bag(kernel.pool.list.bags[place]),
          cut(bag.end - bag.begin) {}
    [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION std::int64_t column() const { return tile * Tile::elements; }
    [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION std::int64_t begin() const {
      return bag.begin + (piece - bag.first_piece) * cut.size;
    }
    [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION std::int64_t end() const {
      return bag.begin + cut.end(piece - bag.first_piece, bag.end - bag.begin);
    }
  };

  template <class Tile>
  KOKKOS_FORCEINLINE_FUNCTION void share(std::int64_t item, std::int64_t count) const {
    const std::int64_t tiles_of_row = tiles.divisor();
    const std::int64_t of_group = piece_counters::tiles(static_cast<std::uint32_t>(tiles_of_row));
    std::uint64_t rows = 0;
    {
      const work_item<Tile> work(*this, item, count);
      typename terms_type::template pooled<Tile> sum(Tile::elements);
      pool.terms.template add_ahead<under_way, Tile>(sum, work.begin(), work.end(), work.column(),
                                                     Tile::elements);
      store_tile<Tile>(sum.value, sums + work.piece * pool.terms.width + work.column(), Tile::elements);
      if (terms_type::may_skip || !sum.marks.misses_row()) rows = static_cast<std::uint64_t>(sum.rows);
    }
    // Looked up once more, which costs less than registers in the loop above.
    const work_item<Tile> work(*this, item, count);
    const std::int64_t group = work.tile / of_group, first = group * of_group;
    const std::int64_t last = first + of_group < tiles_of_row ? first + of_group : tiles_of_row;
    piece_arrivals& arrivals = pool.list.arrivals[work.place * pool.list.groups + group];
    if (work.tile == first) Kokkos::atomic_add(&arrivals.rows, rows);
    Kokkos::memory_fence();
    if (Kokkos::atomic_fetch_add(&arrivals.count, 1U) + 1 !=
        static_cast<std::uint32_t>((last - first) * work.cut.count))
      return;
    Kokkos::memory_fence();
    for (std::int64_t tile = first; tile < last; ++tile)
      deliver<Tile>(work, tile * Tile::elements,
                    static_cast<std::int64_t>(Kokkos::atomic_load(&arrivals.rows)));
    pool.list.count_part(count * pool.list.groups);
  }

  /// Adds the sums of all pieces of a bag, and stores the tile.
  template <class Tile>
  KOKKOS_FORCEINLINE_FUNCTION void deliver(const work_item<Tile>& work, std::int64_t column,
                                           std::int64_t rows) const {
    constexpr int at_once = 16 / Tile::elements;
    const Compute* const first = sums + work.bag.first_piece * pool.terms.width + column;
    typename terms_type::template pooled<Tile> total(Tile::elements);
    for (std::int64_t piece = 0; piece < work.cut.count; piece += at_once) {
      Compute next[at_once][Tile::elements];
      for (int k = 0; k < at_once; ++k) {
        const std::int64_t number = piece + k < work.cut.count ? piece + k : work.cut.count - 1;
        load_tile<Tile>(next[k], first + number * pool.terms.width, Tile::elements);
      }
      for (int k = 0; k < at_once; ++k)
        if (piece + k < work.cut.count)
          for (int e = 0; e < Tile::elements; ++e) total.value[e] += next[k][e];
    }
    const bag_range range{work.bag.begin, work.bag.end, true};
    total.rows = rows;
    total.marks.miss(rows < range.end - range.begin);
    pool.template finish_tile<Tile>(total, work.bag.bag, range, column);
  }

  /// The threads of a tile pool their bags alone: bags that overlap next to bad offsets need more sums than
  /// the list has room for.
  KOKKOS_FORCEINLINE_FUNCTION void pool_alone(std::int64_t i) const {
    const std::int64_t width = pool.terms.width;
    for (std::int64_t item = i; item < pool.bags.bags * width; item += threads) {
      const std::int64_t bag = item / width;
      const bag_range range = pool.bags.range(bag, false);
      if (pool.list.takes(range)) pool.template part_of<single_tile>(bag, range, item - bag * width);
    }
    pool.list.count_part(threads);
  }
};

}  // namespace ferry::kernels
