// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/make_plan.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/policy/duplicates.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/rows/detail/launch_update.hpp>
#include <ferry/rows/detail/move_rows.hpp>
#include <ferry/runtime/detail/array_checks.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/runtime/ticket.hpp>
#include <ferry/tensor/array_traits.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

/// Rows of LayoutLeft arrays with few columns: a verb runs once for each column, which is an array of rank 1.
/// A device's threads then read and write neighbouring elements of a column, as kernels of such arrays do.
namespace ferry::detail {

/// The largest number of columns: each takes launches of its own.
inline constexpr std::size_t most_columns = 8;

/// True for Kokkos::View<T*[n], LayoutLeft> of at most most_columns columns, which its type fixes.
template <class Array>
inline constexpr bool has_short_columns = false;
template <class DataType, class... Properties>
inline constexpr bool has_short_columns<Kokkos::View<DataType, Properties...>> = [] {
  using view = Kokkos::View<DataType, Properties...>;
  if constexpr (view::rank() == 2 && view::rank_dynamic() <= 1)
    return std::is_same_v<typename view::array_layout, Kokkos::LayoutLeft> &&
           view::static_extent(1) <= most_columns;
  else
    return false;
}();

template <class Array>
inline constexpr bool has_rows_or_columns =
    is_row_major_v<std::remove_cvref_t<Array>> || has_short_columns<std::remove_cvref_t<Array>>;

/// True if a verb goes through the columns of its arrays.
template <class Table, class Batch>
concept ByColumns = has_rows_or_columns<Table> && has_rows_or_columns<Batch> &&
    (has_short_columns<std::remove_cvref_t<Table>> || has_short_columns<std::remove_cvref_t<Batch>>);

/// Column c of an array of rank 2, or an array of rank 1 itself, as an array of rank 1.
template <class T, class Space>
array_ref<T, Space> column_of(const array_ref<T, Space>& array, std::int64_t c) {
  array_ref<T, Space> column = array;
  if (array.rank < 2) return column;
  column.rank = 1;
  column.data = array.data + c * (array.rank == 2 ? array.strides[1] : 1);
  return column;
}

/// Checks the extents of a verb by columns, from which those of each column follow, that rows of rank 3 and
/// more are dense, and that the arrays have no element in common.
template <class Table, class Batch>
void require_columns(const char* verb, const Table& table, std::int64_t positions, const Batch& batch) {
  if (table.rank != 2) require_dense_rows(verb, table);
  if (batch.rank != 2) require_dense_rows(verb, batch);
  require_sizes(verb, table, positions, batch);
  for (std::int64_t a = 0; a < table.width(); ++a)
    for (std::int64_t b = 0; b < batch.width(); ++b)
      if (overlap(column_of(table, a), column_of(batch, b))) refuse_overlap(verb, table, batch);
}

/// A verb by columns: move(column of the table, column of the batch, rows, bounds...) gives the ticket of
/// each. Its own ticket covers all of them and has the findings, which name the table. Duplicates: the policy
/// of a verb that writes to the table, to no column if an index is bad; else void.
template <class Chosen, class Duplicates, class Exec, class Table, class Indices, class Batch, class Move>
ticket move_columns(const char* verb, const Exec& exec, const Table& table, const Indices& indices,
                    const Batch& batch, const Move& move) {
  using bounds_policy = typename Chosen::template get<bounds_category, bounds::check>;
  const auto& list = rows_named_by(indices);
  require_columns(verb, table, positions_of(list), batch);
  launch_context<Exec> call(exec, verb);
  constexpr bool forbids_repeats = [] {
    if constexpr (std::is_void_v<Duplicates>)
      return false;
    else
      return Duplicates::forbids;
  }();
  const auto move_each = [&](const auto& rows, auto... bounds) {
    if constexpr (forbids_repeats) static_cast<void>(report_repeats(call, call.label("columns"), list));
    write_jointly(0, static_cast<int>(table.width()), [&](int c) {
      auto sink = column_of(batch, c);
      auto column = column_of(table, c);
      move(column, sink, rows, bounds...).drop();
    });
  };
  if constexpr (is_plan<Indices>) {
    require_plan<Exec, Chosen>(verb, list, table);
    call.use(list.storage());
    move_each(indices);
  } else if constexpr (!std::is_void_v<Duplicates> && bounds_policy::reports) {
    move_each(rows_to_write<bounds_policy>(call, list, table.rows()), bounds::skip{});
  } else {
    look_at_bounds<bounds_policy>(call, list, table.rows());
    move_each(indices);
  }
  return call.finish(table, positions_of(list), has_signed_indices(list));
}

/// scatter or scatter_add by columns; write(table, rows, values, policies...) is the verb. Indices are sorted
/// first, once for all columns, if the policies need a plan. Policies: those of the call.
template <class DefaultDuplicates, class Exec, class Table, class Indices, class Values, class Write,
          class... Policies>
ticket write_columns(const char* verb, const Exec& exec, Table&& table, const Indices& indices,
                     const Values& values, const Write& write, Policies... policies) {
  using chosen = chosen_policies<Policies...>;
  using duplicates_policy = typename chosen::template get<duplicates_category, DefaultDuplicates>;
  using path_policy = typename chosen::template get<path_category, path::automatic>;
  require_output<Table>();
  require_same_width<Table, Values>();
  if constexpr (!is_plan<Indices> && !std::is_same_v<duplicates_policy, duplicates::assume_unique> &&
                !in_any_order<duplicates_policy>) {
    using bounds_policy = typename chosen::template get<bounds_category, bounds::check>;
    return write(table, make_plan(exec, indices, make_ref(table).rows(), bounds_policy{}), values,
                 policies...);
  } else {
    return move_columns<chosen, duplicates_policy>(
        verb, exec, make_ref(table), indices, read_only(make_ref(values)),
        [&]<class... Bounds>(auto& column, auto& batch, const auto& rows, Bounds... bounds) {
          if constexpr (sizeof...(Bounds) == 0)
            return write(column, rows, batch, policies...);
          else
            return write(column, rows, batch, path_policy{}, duplicates_policy{}, bounds...);
        });
  }
}

}  // namespace ferry::detail
