// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/plan/detail/row_source.hpp>
#include <ferry/policy/duplicates.hpp>
#include <ferry/rows/detail/combine.hpp>
#include <ferry/rows/detail/packet.hpp>
#include <ferry/rows/detail/row_operations.hpp>
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
/// limits this kernel, so blocks are small and a thread has two values of a segment under way: four, or two
/// rows per thread, cost more in registers than they gain (H200). Another kernel sums the pieces of long
/// segments before.
///
/// Host mapping: one run of neighbouring items per thread. The values shared by all rows are kept in copies
/// that no store can alias, so the compiler keeps them in registers. Rows of one value, the common case, have
/// a loop of their own without a sum, which works on whole cache lines if the width allows it.
template <class Compute, class Tile, class Duplicates, class Source, class Value, class Operation>
struct apply_rows {
  static constexpr unsigned int most_threads = Operation::most_threads;  ///< of a block, see launch
  static constexpr bool takes_runs = Tile::host;                         ///< see launch
  static constexpr unsigned int blocks_at_once = blocks_of_rows<Compute, Tile, Source, Operation>();
  static constexpr unsigned int block_rounds = rounds_of_rows<Source, Operation>(blocks_at_once);

  using duplicates_type = Duplicates;
  using compute = Compute;
  using tile = Tile;
  using operation_type = Operation;

  Source source;
  const Value* values;
  std::int64_t values_stride;
  std::int64_t width;
  std::int64_t items;
  detail::fast_divisor tiles;
  Operation operation;

  [[nodiscard]] std::int64_t per_item() const { return tiles.divisor(); }
  [[nodiscard]] std::int64_t bytes_each() const {
    return width * static_cast<std::int64_t>(sizeof(Value) + Operation::arrays * sizeof(Compute));
  }

  /// See launch_each: a plan has fewer segments than positions.
  [[nodiscard]] KOKKOS_FUNCTION std::int64_t work_items() const requires(by_segments<Source>) {
    return source.items(items) * tiles.divisor();
  }

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    // Looked up at once, because each of them comes from memory.
    const bool refused = source.blocked() || operation.is_refused();
    const std::int64_t item = tiles.quotient(i);
    const row_segment rows = source.segment(item);
    if (refused || rows.row < 0) return;
    const std::int64_t number = i - item * tiles.divisor();
    const std::int64_t column = first_column<Tile>(operation, item, rows.row) + number * Tile::elements;
    const int count = count_of<Tile>(column, width);
    if (count == 0) return;
    Compute value[Tile::elements];
    typename Operation::template held<Tile, Compute> inputs;
    operation.load(inputs, rows.row, column, count);
    combine_segment<Tile, Duplicates, adds_value<Operation>>(value, source, rows, values, values_stride,
                                                             column, count);
    operation.finish(inputs, item, rows.row, column, value, count);
  }

  /// Updates a tile of an item's row by the sum of its values.
  KOKKOS_FORCEINLINE_FUNCTION void update_by_sum(std::int64_t item, const row_segment& rows,
                                                 std::int64_t column, Compute (&sum)[Tile::elements],
                                                 int count) const {
    if constexpr (std::is_same_v<Duplicates, duplicates::mean>)
      for (int e = 0; e < Tile::elements; ++e) sum[e] /= static_cast<Compute>(rows.end - rows.begin);
    typename Operation::template held<Tile, Compute> inputs;
    operation.load(inputs, rows.row, column, count);
    operation.finish(inputs, item, rows.row, column, sum, count);
  }

  void operator()(const detail::host_run& run) const {
    if (width == 0 || source.blocked() || operation.is_refused()) return;
    if constexpr (is_light)
      if (width % line_elements<0>() == 0) return in_registers(rows_of_host_run<true>{*this, run});
    in_registers(rows_of_host_run<false>{*this, run});
  }

 private:
  /// The values shared by all rows, in a copy that no store can alias.
  struct shared {
    Source source;
    Operation operation;
    const Value* values;
    std::int64_t values_stride;
    std::int64_t width;
  };
  /// all_rows in registers of some size.
  template <bool Whole>
  struct rows_of_host_run {
    const apply_rows& kernel;
    const detail::host_run& run;

    template <int Bytes>
    [[gnu::always_inline]] void operator()(detail::register_size<Bytes>) const {
      kernel.template all_rows<Whole, Bytes>(run);
    }
  };

  /// Operations on the table alone take so little time that a test for a remainder shows. They have a second
  /// loop, for rows without one. Others save its compile time.
  static constexpr bool is_light = Operation::arrays <= 2;

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

  /// Elements per step of the loop over whole lines: one cache line, vector by vector.
  template <int Bytes>
  static constexpr int line_elements() {
    constexpr int vectors = static_cast<int>(look_ahead::line / sizeof(Compute)) / at_a_time<Bytes>();
    return vectors < 1 ? at_a_time<Bytes>() : vectors * at_a_time<Bytes>();
  }

  /// Whole: a row has no remainder behind its lines. A function of its own, so that it has all registers.
  template <bool Whole, int Bytes>
  [[gnu::always_inline]] void all_rows(const detail::host_run& run) const {
    static_assert(line_elements<Bytes>() == line_elements<0>());
    const shared batch{source, operation, values, values_stride, width};
    const std::int64_t count = batch.source.items(items);
    const std::int64_t begin = run.begin(count);
    const std::int64_t end = run.end(count);
    const std::int64_t distance =
        look_ahead::rows(batch.width * static_cast<std::int64_t>(sizeof(Value))) - 1;
    if constexpr (detail::in_any_order<Duplicates> && by_positions<Source>)
      rows_of_owner<Whole, Bytes>(batch, run, count, distance);
    else if constexpr (requires { Source::in_order; })
      rows_in_order<Whole, Bytes>(batch, begin, end, distance);
    else
      rows_by_plan<Whole, Bytes>(batch, begin, end, distance);
  }

  /// The values are contiguous, which the hardware prefetcher detects. Only the table's rows are prefetched.
  template <bool Whole, int Bytes>
  [[gnu::always_inline]] static void rows_in_order(const shared& batch, std::int64_t begin, std::int64_t end,
                                                   std::int64_t distance) {
    for (std::int64_t i = begin; i < end; ++i) {
      const row_segment upcoming_segment =
          batch.source.segment_within(i + distance < end ? i + distance : end - 1);
      if (upcoming_segment.row >= 0) batch.operation.prefetch(upcoming_segment.row, batch.width);
      const row_segment rows = batch.source.segment_within(i);
      if (rows.row >= 0)
        row_of_one<Whole, Bytes>(batch, i, rows.row,
                                 batch.values + batch.source.position(rows.begin) * batch.values_stride, 0,
                                 batch.width);
    }
  }

  /// Several positions may name a row. Each thread walks over all of them and takes the rows that it owns.
  template <bool Whole, int Bytes>
  [[gnu::always_inline]] static void rows_of_owner(const shared& batch, const detail::host_run& run,
                                                   std::int64_t count, std::int64_t distance) {
    const auto owned = [&](std::int64_t i) {
      const row_segment rows = batch.source.segment_within(i);
      const auto mixed = static_cast<std::uint64_t>(rows.row) * 0x9e3779b97f4a7c15u >> 32;
      const bool is_owned =
          static_cast<std::int64_t>(mixed * static_cast<std::uint64_t>(run.runs) >> 32) == run.number;
      return rows.row >= 0 && is_owned ? rows : row_segment{};
    };
    for (std::int64_t i = 0; i < count; ++i) {
      const row_segment upcoming_segment = owned(i + distance < count ? i + distance : count - 1);
      if (upcoming_segment.row >= 0) {
        look_ahead::prefetch(
            batch.values + batch.source.position(upcoming_segment.begin) * batch.values_stride,
            batch.width * static_cast<std::int64_t>(sizeof(Value)));
        batch.operation.prefetch(upcoming_segment.row, batch.width);
      }
      const row_segment rows = owned(i);
      if (rows.row >= 0)
        row_of_one<Whole, Bytes>(batch, i, rows.row,
                                 batch.values + batch.source.position(rows.begin) * batch.values_stride, 0,
                                 batch.width);
    }
  }

  template <bool Whole, int Bytes>
  [[gnu::always_inline]] void rows_by_plan(const shared& batch, std::int64_t begin, std::int64_t end,
                                           std::int64_t distance) const {
    using window = upcoming_rows<Duplicates, Source, Value>;
    window upcoming;
    Compute combined[combined_columns];
    for (std::int64_t i = begin; i < end && i < begin + distance; ++i) upcoming.look_up(batch, i);
    for (std::int64_t i = begin; i < end; ++i) {
      if (i + distance < end) upcoming.look_up(batch, i + distance);
      const std::int64_t slot = i & (window::most - 1);
      const std::int64_t row = upcoming.row[slot];
      if (row < 0) continue;
      const Value* const value = upcoming.value[slot];
      if constexpr (std::is_same_v<Value, Compute>) {
        // One loop for rows of one value and of several: two would cost a step most of its compile time.
        std::int64_t column = 0;
        do {
          const Value* operand = value;
          std::int64_t limit = batch.width;
          if (value == nullptr) {
            limit = column + combined_columns < limit ? column + combined_columns : limit;
            combine<Bytes>(combined, i, column, limit);
            operand = combined;
          }
          row_of_one<Whole, Bytes>(batch, i, row, operand, column, limit);
          column = limit;
        } while (column < batch.width);
      } else if (value != nullptr) {
        row_of_one<Whole, Bytes>(batch, i, row, value, 0, batch.width);
      } else {
        detail::registers_for<Compute>::template in<Bytes>(row_of_several<Whole>{*this, batch, i, row});
      }
    }
  }

  /// Columns of a row that are combined at once: a few cache lines, in the first level of cache.
  static constexpr std::int64_t combined_columns = 256;

  /// The values of a row in columns [column, limit), combined.
  template <int Bytes>
  void combine(Compute* combined, std::int64_t item, std::int64_t column, std::int64_t limit) const {
    detail::registers_for<Compute>::template in<Bytes>(combine_values<Compute, Duplicates, Source, Value>{
        source, source.segment_within(item), values, values_stride, column, limit, combined});
  }

  /// In a function of its own, because it would cost the loop over rows of one value registers.
  template <bool Whole>
  struct row_of_several {
    const apply_rows& kernel;
    const shared& batch;
    std::int64_t item;
    std::int64_t row;

    template <int Bytes>
    [[gnu::always_inline]] void operator()(detail::register_size<Bytes>) const {
      Compute combined[combined_columns];
      for (std::int64_t column = 0; column < batch.width; column += combined_columns) {
        const std::int64_t left = batch.width - column;
        const std::int64_t limit = column + (left < combined_columns ? left : combined_columns);
        kernel.template combine<Bytes>(combined, item, column, limit);
        row_of_one<Whole, Bytes>(batch, item, row, static_cast<const Compute*>(combined), column, limit);
      }
    }
  };

  /// Columns [column, limit) of a row, from the values of these columns.
  template <bool Whole, int Bytes, class From>
  [[gnu::always_inline]] static void row_of_one(const shared& batch, std::int64_t item, std::int64_t row,
                                                const From* operand, std::int64_t column,
                                                std::int64_t limit) {
    each_tile<at_a_time<Bytes>(), Whole ? line_elements<Bytes>() : 0, Bytes>(
        limit - column, [&]<class Part>(Part, std::int64_t first) __attribute__((always_inline)) {
          Compute value[Part::elements];
          typename Operation::template held<Part, Compute> inputs;
          batch.operation.load(inputs, row, column + first, Part::elements);
          load_tile<Part>(value, operand + first, Part::elements);
          batch.operation.finish(inputs, item, row, column + first, value, Part::elements);
        });
  }
};

}  // namespace ferry::kernels
