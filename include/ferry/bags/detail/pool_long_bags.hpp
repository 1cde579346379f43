// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/detail/bag_list.hpp>
#include <ferry/plan/detail/row_source.hpp>
#include <ferry/rows/detail/combine.hpp>
#include <ferry/rows/detail/tile.hpp>
#include <ferry/runtime/detail/launch.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace ferry::kernels {

/// Pools the bags that a launch of `Pool` has listed. No thread waits for another one: the last of the
/// threads that sum a tile of the pieces of a bag adds their sums in order and stores the tile.
///
/// Device mapping: a fixed number of threads, which end at once if no bag is listed, walk over (run, tile),
/// row-major, a warp over 32 neighbours. A run has one piece if there are few, up to `longest_run` if there
/// are many: then pieces are short, and each run costs a fence and a search of the list. Neighbouring warps
/// take items far apart, so that few pieces occupy all multiprocessors. A bag of all positions has 256
/// pieces, whose threads need 16 rows in flight, and the indices of the next ones, to read at the memory's
/// rate.
///
/// Host mapping: one run of pieces per thread.
template <class Compute, class Pool>
struct pool_long_bags {
  static constexpr unsigned int most_threads = 128;  ///< of a block, see launch
  static constexpr unsigned int blocks_at_once = 4;  ///< see launch: 128 registers
  static constexpr bool takes_runs = true;           ///< on a host, see launch
  /// The number of threads is a multiple of the size of a block.
  static constexpr std::int64_t warp = 32, warps = most_threads / warp;
  static constexpr std::int64_t longest_run = 8;  ///< pieces

  using terms_type = typename Pool::terms_type;
  static constexpr int under_way = sizeof(Compute) > 4 || terms_type::weighs ? 8 : 16;

  Pool pool;
  Compute* sums;  ///< a row for each piece
  ferry::detail::fast_divisor tiles;
  bool packed;           ///< true if a tile is a packet
  std::int64_t threads;  ///< of a device

  /// The bytes of a piece, on a host.
  [[nodiscard]] std::int64_t bytes_each() const { return sum_pieces::least * pool.terms.row_bytes(); }

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const long_bag_totals totals = pool.list.counts();
    if (totals.pieces == 0) return;
    if (pool.list.exceeds(totals)) return pool_alone(i);
    const std::int64_t number = i / warp;
    const std::int64_t warp_index = number % warps * (threads / most_threads) + number / warps;
    // Each thread has two runs or more, so that the slowest ones do not wait for a whole long one.
    const std::int64_t share_of_thread = totals.pieces * tiles.divisor() / (2 * threads);
    const std::int64_t length = share_of_thread < 1             ? 1
                                : share_of_thread < longest_run ? share_of_thread
                                                                : longest_run;
    const std::int64_t runs = (totals.pieces + length - 1) / length;
    for (std::int64_t item = warp_index * warp + i % warp; item < runs * tiles.divisor(); item += threads) {
      const std::int64_t run = tiles.quotient(item), tile = item - run * tiles.divisor();
      const std::int64_t end = (run + 1) * length < totals.pieces ? (run + 1) * length : totals.pieces;
      for (std::int64_t piece = run * length; piece < end;)
        piece = packed ? share<packed_tile>(piece, end, tile, totals.bags)
                       : share<single_tile>(piece, end, tile, totals.bags);
    }
  }

  void operator()(const ferry::detail::host_run& run) const {
    const long_bag_totals totals = pool.list.counts();
    if (totals.pieces == 0) return;
    if (pool.list.exceeds(totals)) {
      for (std::int64_t bag = run.begin(pool.bags.bags); bag < run.end(pool.bags.bags); ++bag)
        if (const bag_range range = pool.bags.range(bag, false); pool.list.takes(range))
          pool.all_of(bag, range);
      return pool.list.count_part(run.runs);
    }
    const std::int64_t end = run.end(totals.pieces);
    for (std::int64_t piece = run.begin(totals.pieces); piece < end; ++piece) share_row(piece, totals.bags);
  }

 private:
  /// A piece, and its bag at an index of the list.
  struct bag_piece {
    std::int64_t piece, index;
    long_bag bag;
    sum_pieces cut;

    KOKKOS_FORCEINLINE_FUNCTION bag_piece(const long_bag_list& list, std::int64_t number, std::int64_t count)
        : piece(number),
          index(list.index_of(piece, count)),
          bag(list.bags[index]),
          cut(bag.end - bag.begin) {}
    [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION std::int64_t begin() const {
      return bag.begin + (piece - bag.first_piece) * cut.size;
    }
    [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION std::int64_t end() const {
      return bag.begin + cut.end(piece - bag.first_piece, bag.end - bag.begin);
    }
  };

  /// Sums a tile of the pieces [piece, end) of one bag. Returns the first piece of the next bag, or end.
  template <class Tile>
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t share(std::int64_t piece, std::int64_t end, std::int64_t tile,
                                                 std::int64_t count) const {
    const std::int64_t begin = piece;
    std::uint64_t rows = 0;
    {
      bag_piece work(pool.list, piece, count);
      if (work.bag.first_piece + work.cut.count < end) end = work.bag.first_piece + work.cut.count;
      for (; work.piece < end; ++work.piece) rows += sum<Tile>(work, tile * Tile::elements, Tile::elements);
    }
    // Looked up once more, which costs less than registers in the loop of the sum.
    const bag_piece work(pool.list, begin, count);
    piece_arrivals& arrivals = pool.list.arrivals[work.index * tiles.divisor() + tile];
    if (is_last(arrivals, rows, end - begin, work.cut.count)) {
      deliver<Tile>(work, arrivals, tile * Tile::elements, Tile::elements);
      pool.list.count_part(count * tiles.divisor());
    }
    return end;
  }

  /// All tiles of a piece, on a host.
  void share_row(std::int64_t piece, std::int64_t count) const {
    constexpr int most = host_tile::elements;
    const std::int64_t width = pool.terms.width;
    const bag_piece work(pool.list, piece, count);
    std::uint64_t rows = 0;
    const auto visit = [&](const auto& whole, const auto& partial) {
      std::int64_t column = 0;
      for (; column + most <= width; column += most) whole(column);
      if (column < width) partial(column, static_cast<int>(width - column));
    };
    visit([&](std::int64_t column) { rows = sum<whole_host_tile<most>>(work, column, most); },
          [&](std::int64_t column, int live_columns) { rows = sum<host_tile>(work, column, live_columns); });
    piece_arrivals& arrivals = pool.list.arrivals[work.index];
    if (!is_last(arrivals, rows, 1, work.cut.count)) return;
    visit([&](std::int64_t column) { deliver<whole_host_tile<most>>(work, arrivals, column, most); },
          [&](std::int64_t column, int live_columns) {
            deliver<host_tile>(work, arrivals, column, live_columns);
          });
    pool.list.count_part(count);
  }

  /// Sums a tile of a piece. Returns its number of positions with a row, or fewer if that is not all.
  template <class Tile>
  KOKKOS_FORCEINLINE_FUNCTION std::uint64_t sum(const bag_piece& work, std::int64_t column, int count) const {
    typename terms_type::template pooled<Tile> total(count);
    if constexpr (Tile::host)
      pool.terms.template add_range<Tile>(total, work.begin(), work.end(), column, count);
    else
      pool.terms.template add_ahead<under_way, Tile>(total, work.begin(), work.end(), column, count);
    store_tile<Tile>(total.value, sums + work.piece * pool.terms.width + column, count);
    return !terms_type::may_skip && total.misses_row ? 0 : static_cast<std::uint64_t>(total.rows);
  }

  /// Counts sums that are written. True if they are the last of a bag's pieces: that thread sees the others.
  KOKKOS_FORCEINLINE_FUNCTION static bool is_last(piece_arrivals& arrivals, std::uint64_t rows,
                                                  std::int64_t written, std::int64_t pieces) {
    if (rows != 0) Kokkos::atomic_add(&arrivals.rows, rows);
    Kokkos::memory_fence();
    const auto arrived = static_cast<std::uint32_t>(written);
    if (Kokkos::atomic_fetch_add(&arrivals.count, arrived) + arrived != static_cast<std::uint32_t>(pieces))
      return false;
    Kokkos::memory_fence();
    return true;
  }

  /// Adds the sums of all pieces of a bag, and stores the tile.
  template <class Tile>
  KOKKOS_FORCEINLINE_FUNCTION void deliver(const bag_piece& work, piece_arrivals& arrivals,
                                           std::int64_t column, int count) const {
    const Compute* const first = sums + work.bag.first_piece * pool.terms.width + column;
    typename terms_type::template pooled<Tile> total(count);
    add_terms<Tile, 16 / Tile::elements>(total.value, std::int64_t{0}, work.cut.count, count,
                                         [&](Compute(&term)[Tile::elements], std::int64_t piece) {
                                           load_tile<Tile>(term, first + piece * pool.terms.width, count);
                                         });
    const bag_range range{work.bag.begin, work.bag.end, true};
    total.rows = static_cast<std::int64_t>(Kokkos::atomic_load(&arrivals.rows));
    total.misses_row |= total.rows < range.end - range.begin;
    pool.template finish_tile<Tile>(total, work.bag.bag, range, column, count);
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
