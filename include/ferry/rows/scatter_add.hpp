// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/detail/prebuilt.hpp>
#include <ferry/plan/row_plan.hpp>
#include <ferry/rows/detail/row_access.hpp>
#include <ferry/rows/detail/row_jobs.hpp>
#include <ferry/rows/detail/short_columns.hpp>
#include <ferry/rows/detail/update_rows.hpp>

#include <type_traits>

namespace ferry {

/// table[r] += the combined values of all positions that name row r.
///
///   exec      the execution space instance that the work is enqueued on
///   table     rows x width of numbers, any memory space, or a table of another kind: a cached_table, say
///   indices   rank-1 array of int32, uint32, int64 or uint64, or a row_plan
///   values    one row of numbers per index; must not overlap the table
///   policies  path        default path::automatic; not path::cooperative
///             bounds      default bounds::check; a plan has its own
///             duplicates  default duplicates::sum
///             occupancy   the blocks of the kernel that writes rows, default occupancy::full
///
/// Values are summed in the order of their positions, in the accumulation type, and the sum is added to the
/// table once: the same bits on every backend and for every number of threads. duplicates::sum_any_order
/// gives that up and makes no plan. Ordering, lifetimes and errors are those of scatter, and so are views in
/// LayoutLeft; such a call that throws for lack of memory may have added to some columns.
template <class Exec, class Table, class Indices, class Values, class... Policies>
  requires(detail::HasOutputRows<Table>&& detail::Fits<detail::scatter_add_arguments, const Exec&, Table,
                                                       const Indices&, const Values&, Policies...>)
[[nodiscard]] ticket scatter_add(const Exec& exec, Table&& table, const Indices& indices,
                                 const Values& values, [[maybe_unused]] Policies... policies) {
  using chosen = detail::chosen_policies<Policies...>;
  using access_type = detail::access_to<Table>;
  if constexpr (detail::ByColumns<Table, Values>) {
    return detail::write_columns<duplicates::sum>(
        "scatter_add", exec, table, indices, values,
        [&](auto& column, const auto& rows, const auto& batch, auto... options) {
          return scatter_add(exec, column, rows, batch, options...);
        },
        policies...);
  } else if constexpr (detail::is_quantized<std::remove_cvref_t<typename access_type::added_to>>) {
    static_assert(
        sizeof(Exec) == 0,
        "ferry: scatter_add adds to rows of numbers; quantized rows are replaced by scatter and trained by step.");
    return {};
  } else {
    detail::require_row_verb<Exec, typename access_type::added_to, Indices, Values,
                             detail::without_occupancy<chosen>, true>();
    detail::require_one_end<typename chosen::template get<path_category, path::automatic>>();
    access_type::require_writable();
    access_type::template require<Exec, chosen>();
    const access_type access(table, "scatter_add");
    const auto batch = detail::read_only(make_ref(values));
    using element = typename access_type::value_type;
    static_assert(NumberElement<element> && NumberElement<std::remove_cvref_t<decltype(*batch.data)>>,
                  "ferry: scatter_add adds, so the elements of table and values must be numbers.");
    using duplicates_policy = typename chosen::template get<duplicates_category, duplicates::sum>;
    const auto& rows = detail::rows_named_by(indices);
    using target = std::remove_reference_t<decltype(access.table())>;
    if constexpr (access_type::is_strided &&
                  detail::is_prebuilt_update<chosen, Exec, target, decltype(rows), decltype(batch)>) {
      return detail::prebuilt_scatter_add(exec, access.table(), rows, batch);
    } else {
      detail::require_batch<Exec, chosen>("scatter_add", access.table(), rows, batch);
      access.require_foreign("scatter_add", rows, batch);
      using job = detail::add_job<element, typename access_type::memory_space>;
      return detail::update_rows<verb::scatter_add, chosen, duplicates_policy>(
          detail::row_update{exec, access, job{access.table()}, rows, batch});
    }
  }
}

}  // namespace ferry
