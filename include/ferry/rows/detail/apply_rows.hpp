// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/plan/detail/row_source.hpp>
#include <ferry/policy/duplicates.hpp>
#include <ferry/rows/detail/add_atomically.hpp>
#include <ferry/rows/detail/combine.hpp>
#include <ferry/rows/detail/prefetch.hpp>
#include <ferry/rows/detail/search_rows.hpp>
#include <ferry/runtime/detail/launch.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>
#include <type_traits>

namespace ferry::kernels {

/// Combines the values meant for the row of each item of the source, then applies the operation to that row.
/// No two items share a row, so nothing is atomic, except under duplicates::sum_any_order: there items may be
/// positions. A device's operation then adds atomically; on a host each row belongs to one thread.
///
/// Device mapping: one thread per (item, tile), row-major. The threads of a warp hold neighbouring tiles of
/// one row. Each thread issues the loads of its row and of its first value before it adds anything. Occupancy
/// limits this kernel, so blocks are small and the loop over a segment's values stays simple: four values at
/// a time, or two rows per thread, cost more in registers than they gain (H200). Items beyond the source's
/// count return at once.
///
/// Host mapping: one run of neighbouring items per thread. The values shared by all rows are kept in copies
/// that no store can alias, so the compiler keeps them in registers. Rows of one value, the common case, have
/// a loop of their own without a sum, which works on whole cache lines where the width allows it.
template <class Compute, class Tile, class Duplicates, class Source, class Value, class Operation>
struct apply_rows {
  static constexpr unsigned int most_threads = 128;  ///< of a block, see launch
  static constexpr bool takes_runs = Tile::host;     ///< see launch

  Source source;
  const Value* values;
  std::int64_t values_stride;
  std::int64_t width;
  std::int64_t items;
  detail::fast_divisor tiles;
  Operation operation;

  [[nodiscard]] std::int64_t per_item() const { return tiles.divisor(); }
  /// Of a host's item, a row with one value.
  [[nodiscard]] std::int64_t bytes_each() const {
    return width * static_cast<std::int64_t>(sizeof(Value) + Operation::arrays * sizeof(Compute));
  }

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    // Looked up at once, because each of them comes from memory.
    const bool refused = source.blocked() || operation.is_refused();
    const std::int64_t item = tiles.quotient(i);
    const row_segment rows = source.segment(item);
    if (!refused && rows.row >= 0)
      one<Tile>(item, rows, (i - item * tiles.divisor()) * Tile::elements, Tile::elements);
  }

  void operator()(const detail::host_run& run) const {
    if (width == 0 || source.blocked() || operation.is_refused()) return;
    const auto by_width = [&]<class To>(const To& to) {
      if constexpr (is_light)
        if (width % evenly<0>() == 0) return in_registers(rows_of_host_run<true, To>{*this, to, run});
      in_registers(rows_of_host_run<false, To>{*this, to, run});
    };
    if constexpr (requires { operation.visit_plain(by_width); })
      operation.visit_plain(by_width);
    else
      by_width(operation);
  }

 private:
  /// The values shared by all rows, in a copy that no store can alias.
  template <class To>
  struct shared {
    Source from;
    To to;
    const Value* values;
    std::int64_t values_stride;
    std::int64_t width;
  };
  /// all_rows in registers of some size.
  template <bool Even, class To>
  struct rows_of_host_run {
    const apply_rows& of;
    const To& to;
    const detail::host_run& run;

    template <int Bytes>
    [[gnu::always_inline]] void operator()(detail::register_size<Bytes>) const {
      of.template all_rows<Even, Bytes>(to, run);
    }
  };

  /// combined_tiles likewise.
  struct combined_of_host_run {
    const apply_rows& of;
    std::int64_t item;

    template <int Bytes>
    [[gnu::always_inline]] void operator()(detail::register_size<Bytes>) const {
      of.template combined_tiles<Bytes>(item);
    }
  };

  /// Operations on the table alone take so little time that a test for a remainder shows. They have a second
  /// loop, for rows without one. Others save its compile time.
  static constexpr bool is_light = Operation::arrays <= 2;

  /// A device's kernels sum long segments where that costs them no occupancy: a light one has 30 registers
  /// without and 38 with it. A batch that is searched is too small for that to count.
  static constexpr bool sums_long = (!is_light || std::is_same_v<Source, found_rows>);

  /// Numbers are computed in large registers. Rows that only move gain nothing from them.
  template <class Body>
  static void in_registers(const Body& body) {
    if constexpr (detail::lanes_of<Compute>::most != 0)
      detail::registers_for<Compute>::in_largest(body);
    else
      detail::registers_for<Compute>::template in<0>(body);
  }

  /// Elements per step over a row of one value. An operation that only moves or adds takes one vector at a
  /// time: a processor moves more bytes when loads and stores alternate than when it does four of each.
  template <int Bytes>
  static constexpr int at_a_time() {
    if constexpr (requires { Operation::by_vectors; }) {
      constexpr int fit = (Bytes == 0 ? 16 : Bytes) / static_cast<int>(sizeof(Compute));
      return fit < 1 ? 1 : fit;
    } else {
      return Tile::elements;
    }
  }

  /// Elements per step of the loop for Even widths: one cache line, vector by vector.
  template <int Bytes>
  static constexpr int evenly() {
    constexpr int vectors = static_cast<int>(look_ahead::line / sizeof(Compute)) / at_a_time<Bytes>();
    return vectors < 1 ? at_a_time<Bytes>() : vectors * at_a_time<Bytes>();
  }

  /// A window of upcoming rows: they are looked up and prefetched while earlier rows are processed.
  struct coming_rows {
    static constexpr std::int64_t most = look_ahead::lines_ahead;
    static_assert((most & (most - 1)) == 0);
    std::int64_t row[most];
    const Value* value[most];  ///< null where the row has several, or none

    template <class To>
    [[gnu::always_inline]] void look_up(const shared<To>& of, std::int64_t item) {
      const row_segment rows = of.from.segment_within(item);
      const Value* first = nullptr;
      if (rows.row >= 0) {
        first = of.values + of.from.position(rows.begin) * of.values_stride;
        look_ahead::prefetch(first, of.width * static_cast<std::int64_t>(sizeof(Value)));
        of.to.prefetch(rows.row, of.width);
      }
      row[item & (most - 1)] = rows.row;
      const bool taken_as_it_is = rows.end - rows.begin == 1 && !requires { Source::adjusts; };
      value[item & (most - 1)] = taken_as_it_is ? first : nullptr;
    }
  };

  /// Even: the width is a multiple of evenly(), so a row has no remainder. In a function of its own, so that
  /// it has all registers.
  template <bool Even, int Bytes, class To>
  [[gnu::always_inline]] void all_rows(const To& to, const detail::host_run& run) const {
    static_assert(evenly<Bytes>() == evenly<0>());
    const shared<To> of{source, to, values, values_stride, width};
    const std::int64_t all = of.from.items(items);
    const std::int64_t begin = run.begin(all);
    const std::int64_t end = run.end(all);
    const std::int64_t ahead = look_ahead::rows(of.width * static_cast<std::int64_t>(sizeof(Value))) - 1;
    if constexpr (detail::in_any_order<Duplicates> && by_positions<Source>)
      rows_of_owner<Even, Bytes>(of, run, all, ahead);
    else if constexpr (requires { Source::in_order; })
      rows_in_order<Even, Bytes>(of, begin, end, ahead);
    else
      rows_by_plan<Even, Bytes>(of, begin, end, ahead);
  }

  /// The values are contiguous, which the hardware prefetcher detects. Only the table's rows are prefetched.
  template <bool Even, int Bytes, class To>
  [[gnu::always_inline]] static void rows_in_order(const shared<To>& of, std::int64_t begin, std::int64_t end,
                                                   std::int64_t ahead) {
    for (std::int64_t i = begin; i < end; ++i) {
      const row_segment later = of.from.segment_within(i + ahead < end ? i + ahead : end - 1);
      if (later.row >= 0) of.to.prefetch(later.row, of.width);
      const row_segment rows = of.from.segment_within(i);
      if (rows.row >= 0)
        row_of_one<Even, Bytes>(of, i, rows.row, of.values + of.from.position(rows.begin) * of.values_stride);
    }
  }

  /// Several positions may name a row. Each thread walks over all of them and takes the rows that it owns.
  template <bool Even, int Bytes, class To>
  [[gnu::always_inline]] static void rows_of_owner(const shared<To>& of, const detail::host_run& run,
                                                   std::int64_t all, std::int64_t ahead) {
    const auto owned = [&](std::int64_t i) {
      const row_segment rows = of.from.segment_within(i);
      const auto mixed = static_cast<std::uint64_t>(rows.row) * 0x9e3779b97f4a7c15u >> 32;
      const bool mine =
          static_cast<std::int64_t>(mixed * static_cast<std::uint64_t>(run.runs) >> 32) == run.number;
      return rows.row >= 0 && mine ? rows : row_segment{};
    };
    for (std::int64_t i = 0; i < all; ++i) {
      const row_segment later = owned(i + ahead < all ? i + ahead : all - 1);
      if (later.row >= 0) {
        look_ahead::prefetch(of.values + of.from.position(later.begin) * of.values_stride,
                             of.width * static_cast<std::int64_t>(sizeof(Value)));
        of.to.prefetch(later.row, of.width);
      }
      const row_segment rows = owned(i);
      if (rows.row >= 0)
        row_of_one<Even, Bytes>(of, i, rows.row, of.values + of.from.position(rows.begin) * of.values_stride);
    }
  }

  template <bool Even, int Bytes, class To>
  [[gnu::always_inline]] void rows_by_plan(const shared<To>& of, std::int64_t begin, std::int64_t end,
                                           std::int64_t ahead) const {
    coming_rows coming;
    for (std::int64_t i = begin; i < end && i < begin + ahead; ++i) coming.look_up(of, i);
    for (std::int64_t i = begin; i < end; ++i) {
      if (i + ahead < end) coming.look_up(of, i + ahead);
      const std::int64_t slot = i & (coming_rows::most - 1);
      if (const Value* value = coming.value[slot]; value != nullptr)
        row_of_one<Even, Bytes>(of, i, coming.row[slot], value);
      else if (coming.row[slot] >= 0)
        detail::registers_for<Compute>::template in<Bytes>(combined_of_host_run{*this, i});
    }
  }

  template <bool Even, int Bytes, class To>
  [[gnu::always_inline]] static void row_of_one(const shared<To>& of, std::int64_t item, std::int64_t row,
                                                const Value* from) {
    each_tile<at_a_time<Bytes>(), Even, Bytes>(
        of.width, [&]<class Part>(Part, std::int64_t column) __attribute__((always_inline)) {
          Compute value[Part::elements];
          typename To::template held<Part, Compute> held;
          of.to.load(held, row, column, Part::elements);
          load_tile<Part>(value, from + column, Part::elements);
          of.to.finish(held, item, row, column, value, Part::elements);
        });
  }

  /// A row of several values. In a function of its own, because it would cost the other loop registers.
  template <int Bytes>
  [[gnu::always_inline]] void combined_tiles(std::int64_t item) const {
    const row_segment rows = source.segment_within(item);
    each_tile<Tile::elements, false, Bytes>(
        width, [&]<class Part>(Part, std::int64_t column)
                   __attribute__((always_inline)) { one<Part>(item, rows, column, Part::elements); });
  }

  /// visit(tile, column) for tiles of Most, 4 and 1 elements.
  template <int Most, bool Even, int Bytes, class Visit>
  [[gnu::always_inline]] static void each_tile(std::int64_t width, const Visit& visit) {
    std::int64_t column = 0;
    if constexpr (Even) {
      do {
        for (int first = 0; first < evenly<Bytes>(); first += Most)
          visit(whole_host_tile<Most, Bytes>{}, column + first);
        column += evenly<Bytes>();
      } while (column < width);
    } else {
      for (; column + Most <= width; column += Most) visit(whole_host_tile<Most, Bytes>{}, column);
      if constexpr (Most > 4) {
        FERRY_NOT_UNROLLED
        for (; column + 4 <= width; column += 4) visit(whole_host_tile<4, Bytes>{}, column);
      }
      if constexpr (Most > 1) {
        FERRY_NOT_UNROLLED
        for (; column < width; ++column) visit(whole_host_tile<1, Bytes>{}, column);
      }
    }
  }

  template <class Part>
  KOKKOS_FORCEINLINE_FUNCTION void one(std::int64_t item, const row_segment& rows, std::int64_t column,
                                       int count) const {
    Compute value[Part::elements];
    typename Operation::template held<Part, Compute> held;
    if (sums_long && sums_here<Part, Duplicates>(source, rows)) {
      sum_segment<Part, Duplicates>(value, source, rows, values, values_stride, column);
      operation.load(held, rows.row, column, count);
    } else {
      operation.load(held, rows.row, column, count);
      combine_segment<Part, Duplicates>(value, source, rows, values, values_stride, column, count);
    }
    operation.finish(held, item, rows.row, column, value, count);
  }
};

}  // namespace ferry::kernels
