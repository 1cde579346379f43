// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/make_plan.hpp>
#include <ferry/plan/row_plan.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/rows/detail/expand_rows.hpp>
#include <ferry/rows/detail/launch_update.hpp>
#include <ferry/rows/detail/move_rows.hpp>
#include <ferry/runtime/detail/count_moves.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/runtime/ticket.hpp>

#include <cstdint>
#include <type_traits>

namespace ferry {

namespace detail {

template <class Exec, class T, class TableSpace, class Out, class OutSpace>
ticket gather_once(const Exec& exec, const array_ref<T, TableSpace>& table, const row_plan& plan,
                   const array_ref<Out, OutSpace>& out) {
  const std::int64_t n = plan.positions();
  launch_context<Exec> of(exec, "gather_unique");
  const auto& fetch = of.label("fetch");
  const auto& expand = of.label("expand");
  of.use(plan.storage());
  if (out.size() != 0) {
    require_direct_reach("gather_unique", exec, table);
    require_direct_reach("gather_unique", exec, out);
    of.reads_from(table);
    of.writes_to(out);
    [[maybe_unused]] const auto moving = moves<path::direct>(of, table, out, bytes_of_rows(table, n));
    const plan_storage& from = *plan.storage();
    const kernels::segment_heads heads{from.unique_rows, from.segment_begin, from.order, from.unique_count};
    launch_gather(exec, fetch, table, out, heads, n);
    launch_gather(exec, expand, read_only(out), out, kernels::other_places{heads, from.inverse}, n);
  }
  return of.finish(table, n, plan.storage()->signed_indices);
}

}  // namespace detail

/// out[p] = table[indices[p]] as gather does it, but each different row is read from the table once and then
/// copied within `out`. For tables that are far and batches that name rows many times: the link carries every
/// row once. Both passes give each thread equally many positions, however often a row comes.
///
///   exec      the execution space instance that the work is enqueued on
///   table     rows x width, in memory that kernels of `exec` reach
///   indices   rank-1 array of int32, uint32, int64 or uint64, which are sorted, or a row_plan
///   out       one row per index, in memory that kernels of `exec` reach; must not overlap the table
///   policies  bounds  default bounds::check; a plan has its own
///
/// Ordering, lifetimes and errors are those of gather. Rows of positions without a row keep their contents.
template <class Exec, class Table, class Indices, class Out, class... Policies>
  requires(detail::AnArray<Table>&& detail::Fits<detail::gather_unique_arguments, const Exec&, const Table&,
                                                 const Indices&, Out, Policies...>)
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket gather_unique(
    const Exec& exec, const Table& table, const Indices& indices, Out&& out, Policies...) {
  using chosen = detail::chosen_policies<Policies...>;
  detail::require_row_verb<Exec, Table, Indices, Out, chosen, false>();
  detail::require_output<Out>();
  static_assert(
      !chosen::template names<path_category>,
      "ferry: gather_unique reads the table by kernels of the execution space, so it takes no path policy.");
  using bounds_policy = typename chosen::template get<bounds_category, bounds::check>;
  const auto from = make_ref(table);
  const auto to = make_ref(out);
  detail::require_convertible<typename decltype(to)::value_type, typename decltype(from)::value_type>();
  const auto& named = detail::rows_named_by(indices);
  detail::require_batch<Exec, chosen>("gather_unique", from, named, to);
  if constexpr (detail::is_plan<Indices>)
    return detail::gather_once(exec, from, named, to);
  else
    return detail::gather_once(exec, from, detail::plan_rows_of<bounds_policy>(exec, named, from.rows()), to);
}

}  // namespace ferry
