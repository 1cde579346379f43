// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/detail/bag_list.hpp>
#include <ferry/bags/detail/bag_pieces.hpp>
#include <ferry/bags/detail/pooling_traits.hpp>
#include <ferry/rows/detail/prefetch.hpp>
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
    if constexpr (has_parts<Table> && knows_rows<Source>) {
      constexpr std::int64_t most = std::numeric_limits<few_number>::max();
      return source.rows <= most && table.template parts_from<std::int64_t>(0).row_bytes <= most;
    } else {
      return true;
    }
  }

  /// True if a device keeps the codes of tiles, and decodes them in float as long as that has the same bits.
  template <class Tile>
  static constexpr bool keeps_codes =
      Tile::packed && !Selects && ferry::detail::is_float_number<Compute> && has_coded_tiles<Table>;
  static constexpr int coded_rows = weighs ? 4 : 5;  ///< in flight; a weight takes a register

  /// A tile of a pooled row.
  template <class Tile>
  struct pooled {
    Compute value[Tile::elements];
    std::int64_t origin[Tile::elements];
    std::int64_t rows = 0;
    bool is_exact = true;  ///< whether all codes were decoded to the bits of load
    bag_marks<may_skip> marks;

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
    static_assert(Coded || N == 4 || N == 1, "ferry: add_rest adds three rows at most");
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
    } else if constexpr (Coded) {
      for (; k + N <= end; k += N) add<N, Tile, true, true>(sum, k, parts, count);
      if (k < end) add<N, Tile, false, true>(sum, k, parts, count, end);
    } else {
      FERRY_NOT_UNROLLED
      for (; end - k >= N; k += N) add<N, Tile>(sum, k, parts, count);
      if constexpr (N > 1) add_rest<Tile>(sum, k, static_cast<int>(end - k), parts, count);
    }
  }

  /// As add_range on a device, for few positions, if allows_few().
  template <class Tile>
  KOKKOS_FORCEINLINE_FUNCTION void add_few(pooled<Tile>& sum, std::int64_t k, int rows, std::int64_t column,
                                           int count) const {
    const auto parts = rows_from<few_number>(column);
    FERRY_NOT_UNROLLED
    for (; rows >= 4; rows -= 4, k += 4) add<4, Tile>(sum, k, parts, count);
    add_rest<Tile>(sum, k, rows, parts, count);
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
        add_found<N, Tile>(sum, rows, k, parts, count, end, [&] { next = find<N>(sum, k + N); });
      }
      add_found<N, Tile>(sum, next, k, parts, count, end, [] {});
      k += N;
    }
    add_range<Tile>(sum, k, end, column, count);
  }

 private:
  template <int N, bool Coded, class Tile>
  KOKKOS_FORCEINLINE_FUNCTION void add_rows_of(pooled<Tile>& sum, const bag_range& range, std::int64_t column,
                                               int count) const {
    if constexpr (Selects) {
      add_range<Tile, N, Coded>(sum, range.begin, range.end, column, count);
    } else {
      sum_of_pieces<Compute, Tile::elements, !Tile::host> whole;
      std::int64_t k = range.begin, end = range.end;
      const bool is_long = long_bags::has(range);
      sum.marks.note_length(is_long);
      if (is_long) end = whole.first_end(range, live<Tile>(count));
      for (;;) {
        add_range<Tile, N, Coded>(sum, k, end, column, count);
        if (!sum.marks.is_long(is_long)) return;
        whole.add(sum.value, live<Tile>(count));
        k = end;
        end = whole.next_end(end);
        if (k == end) break;
      }
      whole.store(sum.value, live<Tile>(count));
    }
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

  /// Finds the rows of positions [k, k + N), or if not Whole of those before `end`.
  template <int N, bool Whole = true, class Sum>
  KOKKOS_FORCEINLINE_FUNCTION found_rows<N> find(Sum& sum, std::int64_t k,
                                                 [[maybe_unused]] std::int64_t end = 0) const {
    found_rows<N> rows = {};
    for (int j = 0; j < N; ++j) {
      if (!Whole && k + j >= end) continue;
      bool misses = false;
      if constexpr (returns_first<Source>) {
        rows.row[j] = source.row_or_first(k + j, misses);
      } else {
        rows.row[j] = source.row(k + j, false);
        misses = may_miss<Source> && rows.row[j] < 0;
        if (misses) rows.row[j] = 0;
      }
      if constexpr (may_skip) rows.missing |= misses ? 1u << j : 0u;
      sum.marks.miss(misses);
      if constexpr (weighs) rows.weight[j] = convert<Compute>(weights[k + j]);
    }
    return rows;
  }

  /// Adds such rows. All loads come before `proceed`, which comes before the first addition.
  template <int N, class Tile, bool Whole = true, bool Coded = false, class Parts, class Proceed>
  KOKKOS_FORCEINLINE_FUNCTION void add_found(pooled<Tile>& sum, const found_rows<N>& rows, std::int64_t k,
                                             const Parts& parts, int count, [[maybe_unused]] std::int64_t end,
                                             const Proceed& proceed) const {
    const auto has = [&]([[maybe_unused]] int j) { return Whole || k + j < end; };
    next_tile<Table, Compute, Tile, Coded> tile[N];
    for (int j = 0; j < N; ++j)
      if (has(j)) {
        if constexpr (Coded)
          tile[j].codes = parts.table.row(rows.row[j], parts.width).template load_codes<Tile>(parts.column);
        else
          load<Tile>(tile[j].value, parts, rows.row[j], count);
      }
    proceed();
    for (int j = 0; j < N; ++j) {
      if (!has(j)) continue;
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

  /// Rows of a table that has no parts_from.
  struct any_parts {
    const Table& table;
    std::int64_t width, column;
  };
  /// The rows from a column on.
  template <class Number = std::int64_t>
  KOKKOS_FORCEINLINE_FUNCTION auto rows_from(std::int64_t column) const {
    if constexpr (has_parts<Table>)
      return table.template parts_from<Number>(column);
    else
      return any_parts{table, width, column};
  }

  template <class Tile, class Parts>
  KOKKOS_FORCEINLINE_FUNCTION static void load(Compute (&value)[Tile::elements], const Parts& parts,
                                               std::int64_t row, int count) {
    if constexpr (std::is_same_v<Parts, any_parts>)
      parts.table.row(row, parts.width).template load<Tile>(value, parts.column, count);
    else if constexpr (Selects)
      load_tile<Tile>(value, parts[row], count);
    else
      load_addends<Tile>(value, parts[row], count);
  }

  template <int N, class Tile, bool Whole = true, bool Coded = false, class Parts>
  KOKKOS_FORCEINLINE_FUNCTION void add(pooled<Tile>& sum, std::int64_t k, const Parts& parts, int count,
                                       std::int64_t end = 0) const {
    add_found<N, Tile, Whole, Coded>(sum, find<N, Whole>(sum, k, end), k, parts, count, end, [] {});
  }

  /// Adds the rows of fewer than four positions.
  template <class Tile, class Parts>
  KOKKOS_FORCEINLINE_FUNCTION void add_rest(pooled<Tile>& sum, std::int64_t k, int rows, const Parts& parts,
                                            int count) const {
    if ((rows & 2) != 0) {
      add<2, Tile>(sum, k, parts, count);
      k += 2;
    }
    if ((rows & 1) != 0) add<1, Tile>(sum, k, parts, count);
  }
};

}  // namespace ferry::kernels
