// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/detail/bag_list.hpp>
#include <ferry/bags/detail/pooled_table.hpp>
#include <ferry/plan/detail/row_source.hpp>
#include <ferry/rows/detail/packet.hpp>
#include <ferry/rows/detail/tile.hpp>
#include <ferry/tensor/detail/numeric.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>
#include <limits>
#include <type_traits>

namespace ferry::kernels {

/// The rows of positions, as one thread adds them, or with Selects finds the largest elements. `Weight` is
/// void if positions have no weights, `Chosen` is void if nobody wants to know the position of each maximum.
template <class Compute, bool Selects, class Table, class Source, class Weight, class Chosen>
struct bag_terms {
  static constexpr bool weighs = !std::is_void_v<Weight> && !Selects;
  /// True if a bag's sum may leave out positions.
  static constexpr bool may_skip = may_miss<Source> && !always_strict<Source>;

  /// True if a device's thread needs few registers for its sums.
  static constexpr bool is_lean = has_parts<Table> && sizeof(Compute) <= 4 && !Selects;
  /// How add_few counts rows and the bytes of one: addresses from 32 bits take fewer instructions.
  using few_number = std::conditional_t<knows_rows<Source>, std::uint32_t, std::int64_t>;

  Table table;
  Source source;
  const Weight* weights;
  std::int64_t width;
  std::int64_t positions;  ///< of the batch

  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION std::int64_t row_bytes() const {
    return width * table.element_bytes;
  }

  /// True if a few_number holds all of them.
  [[nodiscard]] bool allows_few() const {
    if constexpr ((has_parts<Table> || has_coded_tiles<Table>)&&knows_rows<Source>) {
      constexpr std::int64_t most = std::numeric_limits<few_number>::max();
      return source.rows <= most && table.row_stride_bytes() <= most;
    } else {
      return true;
    }
  }

  /// True if a device keeps the codes of tiles, and decodes them in float as long as that has the same bits.
  template <class Tile>
  static constexpr bool keeps_codes =
      Tile::packed && !Selects && ferry::detail::is_float_number<Compute> && has_coded_tiles<Table>;
  static constexpr int coded_rows = weighs ? 4 : 5;  ///< in flight; a weight takes a register
  /// Rows that add_few has in flight: as many as its kernel has registers for.
  template <class Tile>
  static constexpr int few_rows = keeps_codes<Tile>                          ? coded_rows
                                  : is_lean && !weighs && Tile::elements < 8 ? 5
                                                                             : 4;

  /// A tile of a pooled row.
  template <class Tile>
  struct pooled {
    Compute value[Tile::elements];
    std::int64_t origin[Tile::elements];
    std::int64_t rows = 0;
    bool is_exact = true;     ///< whether all codes were decoded to the bits of load
    bool misses_row = false;  ///< whether a position has no row

    KOKKOS_FORCEINLINE_FUNCTION explicit pooled(int count) {
      for (int e = 0; e < live<Tile>(count); ++e) value[e] = Compute(0);
      if constexpr (!std::is_void_v<Chosen>)
        for (int e = 0; e < live<Tile>(count); ++e) origin[e] = -1;
    }
  };

  /// Adds the rows of a bag to nothing: one after the other, those of a long bag in pieces.
  template <class Tile>
  KOKKOS_FORCEINLINE_FUNCTION void add_bag(pooled<Tile>& sum, const bag_range& range, std::int64_t column,
                                           int count) const {
    if constexpr (keeps_codes<Tile>) {
      add_rows_of<coded_rows, true, Tile>(sum, range, column, count);
      if (sum.is_exact) return;
      sum = pooled<Tile>(count);  // again, as hosts compute it
      add_rows_of<1, false, Tile>(sum, range, column, count);
    } else {
      add_rows_of<4, false, Tile>(sum, range, column, count);
    }
  }

  /// Adds the rows of positions [k, end) one after the other: N are in flight on a device.
  template <class Tile, int N = 4, bool Coded = false>
  KOKKOS_FORCEINLINE_FUNCTION void add_range(pooled<Tile>& sum, std::int64_t k, std::int64_t end,
                                             std::int64_t column, int count) const {
    const auto parts = rows_from(column);
    if constexpr (Tile::host) {
      const std::int64_t ahead = look_ahead::rows(row_bytes());
      for (; k < end; ++k) {
        if (column == 0 && k + ahead < positions) {
          const std::int64_t later = source.row(k + ahead, false);
          if (!may_miss<Source> || later >= 0) table.prefetch(later, row_bytes());
        }
        add<1, Tile>(sum, k, parts, count);
      }
    } else {
      FERRY_NOT_UNROLLED
      for (; end - k >= N; k += N) add<N, Tile, Coded>(sum, k, parts, count);
      add_few<N, Tile, Coded>(sum, k, static_cast<int>(end - k), parts, count);
    }
  }

  /// As add_range on a device, for few positions, if allows_few(). Returns false if add_bag must pool the
  /// bag: it keeps its contents because a position has no row, or its codes need more than float.
  template <class Tile>
  KOKKOS_FORCEINLINE_FUNCTION bool add_few(pooled<Tile>& sum, std::int64_t k, int rows, std::int64_t column,
                                           int count) const {
    constexpr int most = few_rows<Tile>;
    constexpr bool coded = keeps_codes<Tile>;
    const auto parts = rows_from<few_number, coded>(column);
    FERRY_NOT_UNROLLED
    for (; rows >= most; rows -= most, k += most)
      if (!add<most, Tile, coded, true>(sum, k, parts, count)) return false;
    return add_few<most, Tile, coded, true>(sum, k, rows, parts, count) && sum.is_exact;
  }

  /// As add_range, for threads of a device that are few: N rows are in flight, and the indices of the next N.
  template <int N, class Tile>
  KOKKOS_FORCEINLINE_FUNCTION void add_ahead(pooled<Tile>& sum, std::int64_t k, std::int64_t end,
                                             std::int64_t column, int count) const {
    const auto parts = rows_from(column);
    if (k + N <= end) {
      auto next = find<N>(sum, k);
      for (; k + 2 * N <= end; k += N) {
        const auto rows = next;
        add_found<N, Tile>(sum, rows, k, parts, count, [&](const auto&) {
          next = find<N>(sum, k + N);
          return true;
        });
      }
      add_found<N, Tile>(sum, next, k, parts, count, [](const auto&) { return true; });
      k += N;
    }
    add_range<Tile>(sum, k, end, column, count);
  }

 private:
  template <int N, bool Coded, class Tile>
  KOKKOS_FORCEINLINE_FUNCTION void add_rows_of(pooled<Tile>& sum, const bag_range& range, std::int64_t column,
                                               int count) const {
    if (Selects || !long_bags::has(range))
      return add_range<Tile, N, Coded>(sum, range.begin, range.end, column, count);
    const std::int64_t size = range.end - range.begin;
    const sum_pieces pieces(size);
    Compute total[Tile::elements];
    for (Compute& element : total) element = Compute(0);
    FERRY_NOT_UNROLLED
    for (std::int64_t piece = 0; piece < pieces.count; ++piece) {
      add_range<Tile, N, Coded>(sum, range.begin + piece * pieces.size, range.begin + pieces.end(piece, size),
                                column, count);
      for (int e = 0; e < live<Tile>(count); ++e) {
        total[e] += sum.value[e];
        sum.value[e] = Compute(0);
      }
    }
    for (int e = 0; e < live<Tile>(count); ++e) sum.value[e] = total[e];
  }

  /// The rows of N positions. A position without a row has row 0, which is added only to a sum that nobody
  /// stores. If such positions may be left out, a bit for each says which have none: the rows' numbers would
  /// occupy registers until the end.
  template <int N>
  struct found_rows {
    std::int64_t row[N];
    Compute weight[weighs ? N : 1];
    unsigned int missing;
  };

  /// Finds the rows of positions [k, k + N).
  template <int N, class Sum>
  KOKKOS_FORCEINLINE_FUNCTION found_rows<N> find(Sum& sum, std::int64_t k) const {
    found_rows<N> rows = {};
    for (int j = 0; j < N; ++j) {
      bool misses = false;
      if constexpr (returns_first<Source>) {
        rows.row[j] = source.row_or_first(k + j, misses);
      } else {
        rows.row[j] = source.row(k + j, false);
        misses = may_miss<Source> && rows.row[j] < 0;
        if (misses) rows.row[j] = 0;
      }
      if constexpr (may_skip) rows.missing |= misses ? 1u << j : 0u;
      sum.misses_row |= misses;
      if constexpr (weighs) rows.weight[j] = convert<Compute>(weights[k + j]);
    }
    return rows;
  }

  /// Adds such rows. All loads come before proceed(tiles), which comes before the first addition. If it
  /// returns false, none is added.
  template <int N, class Tile, bool Coded = false, class Parts, class Proceed>
  KOKKOS_FORCEINLINE_FUNCTION void add_found(pooled<Tile>& sum, const found_rows<N>& rows, std::int64_t k,
                                             const Parts& parts, int count, const Proceed& proceed) const {
    next_tile<Table, Compute, Tile, Coded> tile[N];
    for (int j = 0; j < N; ++j) {
      if constexpr (Coded)
        tile[j].codes = parts.template load_codes<Tile>(rows.row[j]);
      else
        load_part<Tile, Selects>(tile[j].value, parts, rows.row[j], count);
    }
    if (!proceed(tile)) return;
    for (int j = 0; j < N; ++j) {
      if constexpr (may_skip)
        if ((rows.missing >> j & 1u) != 0) continue;
      if constexpr (Coded) {
        Compute value[Tile::elements];
        tile[j].codes.decode(value);
        sum.is_exact &= tile[j].codes.code.adds_exactly();
        add_values<Tile>(sum, value, rows.weight[weighs ? j : 0], k + j, count);
      } else {
        add_values<Tile>(sum, tile[j].value, rows.weight[weighs ? j : 0], k + j, count);
      }
    }
  }

  template <class Tile>
  KOKKOS_FORCEINLINE_FUNCTION static void add_values(pooled<Tile>& sum,
                                                     const Compute (&value)[Tile::elements],
                                                     [[maybe_unused]] const Compute& weight,
                                                     [[maybe_unused]] std::int64_t position, int count) {
    if constexpr (Selects) {
      for (int e = 0; e < live<Tile>(count); ++e)
        if (sum.rows == 0 || value[e] > sum.value[e]) {
          sum.value[e] = value[e];
          if constexpr (!std::is_void_v<Chosen>) sum.origin[e] = position;
        }
    } else if constexpr (weighs) {
      for (int e = 0; e < live<Tile>(count); ++e) sum.value[e] += weight * value[e];
    } else {
      for (int e = 0; e < live<Tile>(count); ++e) sum.value[e] += value[e];
    }
    ++sum.rows;
  }

  /// The rows from a column on.
  template <class Number = std::int64_t, bool Coded = false>
  KOKKOS_FORCEINLINE_FUNCTION auto rows_from(std::int64_t column) const {
    if constexpr (has_parts<Table>)
      return table.template parts_from<Number>(column);
    else if constexpr (Coded)
      return table.template codes_from<Number>(column, width);
    else
      return any_parts<Table>{table, width, column};
  }

  /// Adds the rows of N positions. Leaves: returns false if the bag keeps its contents, since one of them
  /// has no row.
  ///
  /// A device has all loads under way before this branch, and additions wait behind it. Without a branch, or
  /// if codes were used behind it alone, nvcc would add the first row, which waits for it, before it loads
  /// the last one.
  template <int N, class Tile, bool Coded = false, bool Leaves = false, class Parts>
  KOKKOS_FORCEINLINE_FUNCTION bool add(pooled<Tile>& sum, std::int64_t k, const Parts& parts,
                                       int count) const {
    bool stays = true;
    add_found<N, Tile, Coded>(sum, find<N>(sum, k), k, parts, count, [&]([[maybe_unused]] const auto& tiles) {
      if constexpr (Leaves && always_strict<Source>) {
        stays = !sum.misses_row;
        if constexpr (Coded)
          if (!stays)
            for (const auto& tile : tiles) sum.rows += tile.codes.some_bits();
      }
      return stays;
    });
    return stays;
  }

  /// Adds the rows of fewer than N positions, at most seven, in the same way.
  template <int N, class Tile, bool Coded, bool Leaves = false, class Parts>
  KOKKOS_FORCEINLINE_FUNCTION bool add_few(pooled<Tile>& sum, std::int64_t k, int rows, const Parts& parts,
                                           int count) const {
    static_assert(N <= 8, "ferry: add_few adds seven rows at most");
    constexpr int part = N > 4 ? 4 : N > 2 ? 2 : 1;
    if constexpr (N > 1) {
      if ((rows & part) != 0) {
        if (!add<part, Tile, Coded, Leaves>(sum, k, parts, count)) return false;
        k += part;
      }
      return add_few<part, Tile, Coded, Leaves>(sum, k, rows, parts, count);
    }
    return true;
  }
};

}  // namespace ferry::kernels
