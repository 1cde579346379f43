// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/make_plan.hpp>
#include <ferry/plan/row_plan.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/rows/detail/row_access.hpp>
#include <ferry/rows/gather.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/runtime/ticket.hpp>

namespace ferry {

namespace detail {

/// gather_unique with a plan, after the checks.
template <class Exec, class Access, class Out, class OutSpace>
ticket gather_unique_on(const Exec& exec, const Access& access, const row_plan& plan,
                        const array_ref<Out, OutSpace>& out) {
  launch_context<Exec> call(exec, "gather_unique");
  call.use(plan.storage());
  if (out.size() != 0)
    gather_once<path::direct, occupancy::full>(call, call.label("fetch"), call.label("expand"), access, plan,
                                               out);
  return call.finish(access.table(), plan.positions(), plan.storage()->signed_indices);
}

}  // namespace detail

/// out[p] = table[indices[p]] as gather does it, but each different row is read from the table once and then
/// copied within `out`. For tables that are far and batches that name rows many times: the link carries every
/// row once. Both passes give each thread equally many positions, however often a row comes.
///
///   exec      the execution space instance that the work is enqueued on
///   table     rows x width, in memory that kernels of `exec` reach, or a table of another kind
///   indices   rank-1 array of int32, uint32, int64 or uint64, which are sorted, or a row_plan
///   out       one row per index, in memory that kernels of `exec` reach; must not overlap the table
///   policies  bounds  default bounds::check; a plan has its own
///
/// Ordering, lifetimes and errors are those of gather. Rows of positions without a row keep their contents.
template <class Exec, class Table, class Indices, class Out, class... Policies>
  requires(detail::HasRows<Table>&& detail::Fits<detail::gather_unique_arguments, const Exec&, const Table&,
                                                 const Indices&, Out, Policies...>)
[[nodiscard]] ticket gather_unique(const Exec& exec, const Table& table, const Indices& indices, Out&& out,
                                   Policies...) {
  using chosen = detail::chosen_policies<Policies...>;
  using access_type = detail::access_to<Table, true>;
  using bounds_policy = typename chosen::template get<bounds_category, bounds::check>;
  detail::require_row_verb<Exec, typename access_type::checked, Indices, Out, chosen, false>();
  detail::require_output<Out>();
  access_type::template require<Exec, chosen>();
  static_assert(
      !chosen::template names<path_category>,
      "ferry: gather_unique reads the table by kernels of the execution space, so it takes no path policy.");
  const auto batch = make_ref(out);
  detail::require_gathered<access_type, typename decltype(batch)::value_type>();
  const access_type access(table, "gather_unique");
  const auto& rows = detail::rows_named_by(indices);
  detail::require_batch<Exec, chosen>("gather_unique", access.table(), rows, batch);
  access.require_foreign("gather_unique", rows, batch);
  if constexpr (detail::is_plan<Indices>)
    return detail::gather_unique_on(exec, access, rows, batch);
  else
    return detail::gather_unique_on(
        exec, access, detail::plan_rows_of<bounds_policy>(exec, rows, access.table().rows()), batch);
}

}  // namespace ferry
