// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/policy.hpp>
#include <ferry/plan/detail/row_source.hpp>
#include <ferry/policy/duplicates.hpp>
#include <ferry/rows/detail/packet.hpp>
#include <ferry/rows/detail/tile.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/plan_storage.hpp>
#include <ferry/tensor/detail/numeric.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>
#include <string_view>
#include <type_traits>

/// Sums of rows that many positions name, in the order of sum_pieces.
namespace ferry::kernels {

/// total += the terms [begin, end), one after the other. `load(term, k)` loads term k; N loads are under way.
template <class Tile, int N, class Compute, class Number, class Load>
KOKKOS_FORCEINLINE_FUNCTION void add_terms(Compute (&total)[Tile::elements], Number begin, Number end,
                                           int count, const Load& load) {
  FERRY_NOT_UNROLLED
  for (; begin < end; begin += N) {
    Compute term[N][Tile::elements];
    for (int j = 0; j < N; ++j) load(term[j], begin + j < end ? begin + j : end - 1);
    for (int j = 0; j < N; ++j)
      if (begin + j < end)
        for (int e = 0; e < live<Tile>(count); ++e) total[e] += term[j][e];
  }
}

/// The value at an index of a source, for columns [column, column + count). Adds: it is added to something.
template <class Tile, bool Adds, class Compute, class Source, class Value>
KOKKOS_FORCEINLINE_FUNCTION void load_value(Compute (&tile)[Tile::elements], const Source& source,
                                            std::int64_t index, const Value* values, std::int64_t stride,
                                            std::int64_t column, int count) {
  const Value* const value = values + row_offset<Tile>(source.position(index), stride) + column;
  if constexpr (Adds)
    load_addends<Tile>(tile, value, count);
  else
    load_tile<Tile>(tile, value, count);
  if constexpr (requires { Source::adjusts; }) source.template adjust<Tile>(tile, index, column, count);
}

/// The columns of the values that a row has.
struct column_range {
  std::int64_t first = 0;
  std::int64_t width = 0;

  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION column_range of_row(std::int64_t) const { return *this; }
};

/// Sums each piece of a plan's long segments. Another kernel then adds the sums of a segment's pieces.
///
/// Device mapping: one thread per (row of the buffer, tile), row-major. A batch that names one row has 256
/// pieces, whose threads need 16 loads in flight to read at the memory's rate.
template <class Compute, class Tile, class Source, class Value, class Columns>
struct sum_pieces_of_segments {
  static constexpr unsigned int most_threads = 128;  ///< see launch_each
  static constexpr unsigned int blocks_at_once = 5;
  static constexpr unsigned int block_rounds = 8;
  static constexpr int under_way = sizeof(Compute) * Tile::elements > 16 ? 8 : 16;

  Source source;
  const std::int64_t* presence;  ///< 0: no segment is long; null: some may be
  const std::int64_t* order;     ///< of the plan
  const std::int64_t* inverse;   ///< of the plan
  const Value* values;
  std::int64_t stride;
  Columns columns;
  ferry::detail::fast_divisor tiles;  ///< of a row of the buffer
  std::int64_t rows;                  ///< of the buffer

  /// Work items, see launch_each.
  [[nodiscard]] KOKKOS_FUNCTION std::int64_t work_items() const {
    return presence == nullptr || *presence != 0 ? rows * tiles.divisor() : 0;
  }

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t row = tiles.quotient(i);
    // A piece with this row has the last of the indices that share it.
    const std::int64_t segment = inverse[order[(row + 1) * sum_pieces::least - 1]];
    if (segment < 0) return;
    const auto begin = static_cast<std::uint32_t>(source.segment_begin[segment]);
    const auto size = static_cast<std::uint32_t>(source.segment_begin[segment + 1]) - begin;
    const piece_cut pieces(size);
    const auto number = static_cast<std::uint32_t>(row - long_sums::row_of(begin));
    if (!long_sums::has(size) || number >= pieces.count) return;
    const column_range part = columns.of_row(source.unique_rows[segment]);
    const std::int64_t column = (i - row * tiles.divisor()) * Tile::elements;
    if (column >= part.width) return;
    const auto load = [&](Compute(&term)[Tile::elements], std::int64_t index) {
      load_value<Tile, true>(term, source, index, values + part.first, stride, column, Tile::elements);
    };
    const std::uint32_t first = begin + number * pieces.size;
    Compute total[Tile::elements];
    load(total, first);
    add_terms<Tile, under_way>(total, first + 1, begin + pieces.end(number, size), Tile::elements, load);
    store_tile<Tile>(total, source.sums.template row<Compute>(row) + column, Tile::elements);
  }
};

/// tile = the values of one segment, combined by `Duplicates`, for columns [column, column + count). The
/// order of additions is that of sum_pieces on every backend. Adds: the result is added to something.
template <class Tile, class Duplicates, bool Adds = false, class Compute, class Source, class Value>
KOKKOS_FORCEINLINE_FUNCTION void combine_segment(Compute (&tile)[Tile::elements], const Source& source,
                                                 const row_segment& rows, const Value* values,
                                                 std::int64_t stride, std::int64_t column, int count) {
  constexpr bool last = std::is_same_v<Duplicates, duplicates::last>;
  load_value<Tile, Adds && Duplicates::combines>(tile, source, last ? rows.end - 1 : rows.begin, values,
                                                 stride, column, count);
  if constexpr (Duplicates::combines) {
    const auto load = [&](Compute(&term)[Tile::elements], std::int64_t index) {
      load_value<Tile, true>(term, source, index, values, stride, column, count);
    };
    constexpr int under_way = Tile::host ? 1 : Tile::packed && Tile::elements <= 4 ? 4 : 2;
    const std::int64_t size = rows.end - rows.begin;
    if (!long_sums::has(size)) {
      add_terms<Tile, Tile::packed ? 2 : 1>(tile, rows.begin + 1, rows.end, count, load);
    } else {
      const auto positions = static_cast<std::uint32_t>(size);
      const piece_cut pieces(positions);
      const auto load_piece = [&](Compute(&term)[Tile::elements], std::uint32_t number) {
        if constexpr (Tile::host) {
          const std::int64_t begin = rows.begin + std::int64_t{number} * pieces.size;
          load(term, begin);
          add_terms<Tile, 1>(term, begin + 1, rows.begin + pieces.end(number, positions), count, load);
        } else if constexpr (requires { source.sums; }) {
          const Compute* const sums =
              source.sums.template row<Compute>(long_sums::row_of(rows.begin) + number);
          load_tile<Tile>(term, sums + column, count);
        }
      };
      load_piece(tile, 0);
      add_terms<Tile, under_way>(tile, 1u, pieces.count, count, load_piece);
    }
    if constexpr (std::is_same_v<Duplicates, duplicates::mean>)
      for (int e = 0; e < live<Tile>(count); ++e) tile[e] /= static_cast<Compute>(size);
  }
}

/// Host: the values of one segment, combined for columns [column, limit), as a body for detail::registers.
template <class Compute, class Duplicates, class Source, class Value>
struct combine_values {
  const Source& source;
  row_segment rows;
  const Value* values;
  std::int64_t values_stride;
  std::int64_t column;
  std::int64_t limit;
  Compute* combined;

  template <int Bytes>
  [[gnu::always_inline]] void operator()(ferry::detail::register_size<Bytes>) const {
    each_tile<host_tile::elements, 0, Bytes>(
        limit - column, [&]<class Part>(Part, std::int64_t first) __attribute__((always_inline)) {
          Compute value[Part::elements];
          combine_segment<Part, Duplicates>(value, source, rows, values, values_stride, column + first,
                                            Part::elements);
          store_tile<Part>(value, combined + first, Part::elements);
        });
  }
};

/// A window of upcoming rows: they are looked up and prefetched while earlier rows are processed.
template <class Duplicates, class Source, class Value>
struct upcoming_rows {
  static constexpr std::int64_t most = look_ahead::lines_ahead;
  static_assert((most & (most - 1)) == 0);
  std::int64_t row[most];
  const Value* value[most];  ///< null if the row has several, or none

  template <class Shared>
  [[gnu::always_inline]] void look_up(const Shared& batch, std::int64_t item) {
    const row_segment rows = batch.source.segment_within(item);
    const Value* first = nullptr;
    if (rows.row >= 0) {
      first = batch.values + batch.source.position(position_of_value(rows)) * batch.values_stride;
      look_ahead::prefetch(first, batch.width * static_cast<std::int64_t>(sizeof(Value)));
      batch.operation.prefetch(rows.row, batch.width);
    }
    row[item & (most - 1)] = rows.row;
    value[item & (most - 1)] = has_one_value(rows) ? first : nullptr;
  }

 private:
  /// True if a row takes one value as it is. Values of other types are converted on the way.
  static bool has_one_value(const row_segment& rows) {
    if constexpr (requires { Source::adjusts; })
      return false;
    else
      return !Duplicates::combines || rows.end - rows.begin == 1;
  }
  static std::int64_t position_of_value(const row_segment& rows) {
    return std::is_same_v<Duplicates, duplicates::last> ? rows.end - 1 : rows.begin;
  }
};

// Sums of values that several positions share, each position with a part of its own. See shared_values for
// the arrays.

/// The rows of a plan; each position has its values times a factor.
struct weighted_plan_rows : plan_rows {
  const double* factors;

  static constexpr bool adjusts = true;

  template <class Tile, class Compute>
  KOKKOS_FORCEINLINE_FUNCTION void adjust(Compute (&tile)[Tile::elements], std::int64_t index, std::int64_t,
                                          int count) const {
    const auto factor = convert<Compute>(factors[index]);
    for (int e = 0; e < live<Tile>(count); ++e) tile[e] = factor * tile[e];
  }
};

/// The rows of a plan; each position has those elements that are for it, and zeros.
struct chosen_plan_rows : plan_rows {
  const std::int64_t* positions;
  const std::int64_t* chosen;
  std::int64_t width;

  static constexpr bool adjusts = true;

  template <class Tile, class Compute>
  KOKKOS_FORCEINLINE_FUNCTION void adjust(Compute (&tile)[Tile::elements], std::int64_t index,
                                          std::int64_t column, int count) const {
    const std::int64_t* of_row = chosen + position(index) * width + column;
    for (int e = 0; e < live<Tile>(count); ++e)
      if (of_row[e] != positions[index]) tile[e] = Compute(0);
  }
};

}  // namespace ferry::kernels

namespace ferry::detail {

/// The duplicates policies of such sums, for the library's own use.
struct shared_sum {
  using policy_category = duplicates_category;
  static constexpr std::string_view name = "duplicates::sum";
  static constexpr bool combines = true;
  static constexpr bool needs_plan = true;
  static constexpr bool forbids = false;
};
struct weighted_sum : shared_sum {
  static kernels::weighted_plan_rows source(const kernels::plan_rows& rows, const plan_storage& store,
                                            std::int64_t) {
    return {rows, store.values.factors};
  }
};
static_assert(DuplicatesPolicy<weighted_sum>);
struct chosen_sum : shared_sum {
  static kernels::chosen_plan_rows source(const kernels::plan_rows& rows, const plan_storage& store,
                                          std::int64_t width) {
    return {rows, store.order, store.values.chosen, width};
  }
};
static_assert(DuplicatesPolicy<chosen_sum>);

/// True if a duplicates policy has a source of its own, which adjusts the values of a position.
template <class Duplicates>
inline constexpr bool adjusts_values = requires {
  &Duplicates::source;
};

template <class Exec, class Compute>
consteval auto exact_number_for() {
  if constexpr (is_host_exec<Exec> || std::is_integral_v<Compute>)
    return std::type_identity<Compute>{};
  else
    return std::type_identity<typename execution_backend<Exec>::template number<Compute>>{};
}
/// The type in which kernels of Exec compute in Compute: its operations are rounded one by one.
template <class Exec, class Compute>
using exact_number = typename decltype(exact_number_for<Exec, Compute>())::type;

/// The type in which kernels of Exec combine adjusted values: a device would fuse the product of an
/// adjustment with the addition after it, so its operations round one by one.
template <class Exec, class Duplicates, class Compute>
using combining_number = std::conditional_t<adjusts_values<Duplicates> && std::is_floating_point_v<Compute>,
                                            exact_number<Exec, Compute>, Compute>;

}  // namespace ferry::detail
