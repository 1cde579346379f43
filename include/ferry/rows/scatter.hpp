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

namespace detail {

/// Checks of scatter's element types and duplicates policy.
template <class Duplicates, class Value>
consteval void require_replacing() {
  static_assert(
      !in_any_order<Duplicates>,
      "ferry: duplicates::sum_any_order adds to rows where they lie, which scatter_add and step do; scatter replaces rows, so it takes duplicates::sum.");
  static_assert(!Duplicates::combines || NumberElement<Value>,
                "ferry: duplicates::sum and duplicates::mean need elements that are numbers.");
}

}  // namespace detail

/// table[indices[p]] = values[p] for each position p, with conversion if the element types differ.
///
///   exec      the execution space instance that the work is enqueued on
///   table     rows x width, any memory space, or a table of another kind: a cached_table, say
///   indices   rank-1 array of int32, uint32, int64 or uint64, or a row_plan
///   values    one row per index; must not overlap the table
///   policies  path        default path::automatic
///             bounds      default bounds::check; a plan has its own
///             duplicates  default duplicates::last; sum and mean replace the row by the combined value
///             occupancy   the blocks of the kernel that writes rows, default occupancy::full; rows that are
///                         encoded, and path::cooperative, take none
///
/// Asynchronous on a device, except path::staged and path::cooperative, which occupy the calling thread. The
/// result does not depend on the backend or on the number of threads. The operands must live until the work
/// has ended, see ferry::ticket; indices in pageable memory may be reused when the call returns. Throws
/// invalid_argument for shapes that do not fit. ticket::wait() throws out_of_range under bounds::check and
/// invalid_argument under duplicates::reject; the table is then unchanged.
///
/// If table or values is a Kokkos::View<T*[n], LayoutLeft> of at most 8 columns, rows move column by column.
/// Indices are sorted once for all columns. The ticket covers all columns.
template <class Exec, class Table, class Indices, class Values, class... Policies>
  requires(detail::HasOutputRows<Table>&& detail::Fits<detail::scatter_arguments, const Exec&, Table,
                                                       const Indices&, const Values&, Policies...>)
[[nodiscard]] ticket scatter(const Exec& exec, Table&& table, const Indices& indices, const Values& values,
                             [[maybe_unused]] Policies... policies) {
  if constexpr (detail::ByColumns<Table, Values>) {
    return detail::write_columns<duplicates::last>(
        "scatter", exec, table, indices, values,
        [&](auto& column, const auto& rows, const auto& batch, auto... options) {
          return scatter(exec, column, rows, batch, options...);
        },
        policies...);
  } else {
    using chosen = detail::chosen_policies<Policies...>;
    using access_type = detail::access_to<Table>;
    detail::require_row_verb<Exec, typename access_type::checked, Indices, Values,
                             detail::without_occupancy<chosen>, true>();
    access_type::require_writable();
    access_type::template require<Exec, chosen>();
    const auto batch = detail::read_only(make_ref(values));
    using value = std::remove_cvref_t<decltype(*batch.data)>;
    using duplicates_policy = typename chosen::template get<duplicates_category, duplicates::last>;
    detail::require_gathered<access_type, value>();
    detail::require_replacing<duplicates_policy, value>();
    const access_type access(table, "scatter");
    const auto& rows = detail::rows_named_by(indices);
    using target = std::remove_reference_t<decltype(access.table())>;
    if constexpr (access_type::is_strided &&
                  detail::is_prebuilt_update<chosen, Exec, target, decltype(rows), decltype(batch)>) {
      return detail::prebuilt_scatter(exec, access.table(), rows, batch);
    } else {
      detail::require_batch<Exec, chosen>("scatter", access.table(), rows, batch);
      access.require_foreign("scatter", rows, batch);
      if constexpr (access_type::encodes_rows) {
        static_assert(
            !chosen::template names<occupancy_category>,
            "ferry: rows that are encoded take the whole device, so this scatter takes no occupancy policy.");
        return access.template replace_rows<chosen, duplicates_policy>(exec, table, rows, batch);
      } else {
        using job = detail::replace_job<typename access_type::value_type, typename access_type::memory_space>;
        return detail::update_rows<verb::scatter, chosen, duplicates_policy>(
            detail::row_update{exec, access, job{access.table()}, rows, batch});
      }
    }
  }
}

}  // namespace ferry
