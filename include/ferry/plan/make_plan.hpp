// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/detail/sort_indices.hpp>
#include <ferry/plan/plan_workspace_bytes.hpp>
#include <ferry/plan/row_plan.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/policy/policies.hpp>
#include <ferry/tensor/array_traits.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace ferry {

namespace detail {

template <class Exec, class Indices, class Chosen>
consteval void require_plan_arguments() {
  require_execution_space<Exec>();
  require_indices<Indices>();
  static_assert(!is_plan<Indices>, "ferry: make_plan takes indices, not another plan.");
  require_policies<Chosen, true, false>();
  static_assert(!Chosen::template names<path_category>,
                "ferry: make_plan moves no rows, so it takes no path policy.");
  require_reach<Exec, Indices>();
}

/// Throws invalid_argument for a negative number of rows too. `clamps`: under bounds::clamp.
void require_plan_shapes(const untyped_array& indices, std::int64_t rows, bool clamps);

}  // namespace detail

/// Sorts the indices of a batch once, for every verb of that batch on tables of `rows` rows.
///
///   exec      the execution space instance that the sort is enqueued on
///   indices   contiguous rank-1 array of int32, uint32, int64 or uint64; in pageable memory it may be reused
///             when the call returns, else when the first verb with the plan has ended
///   rows      rows of the tables that the plan is for, or one of these tables
///   policies  bounds  default bounds::check; a verb that uses the plan reports the bad indices
///
/// Does not wait for the device. Equal rows keep the order of their positions. Throws invalid_argument if
/// the indices are not a contiguous rank-1 array, if `rows` is negative, for more than 2^31 indices, if
/// the bits of a row number and of a position exceed 64, and if `exec` is being captured into a graph.
template <class Exec, class Indices, class Rows, class... Policies>
  requires(detail::Fits<detail::make_plan_arguments, const Exec&, const Indices&, const Rows&, Policies...>)
[[nodiscard]] row_plan make_plan(const Exec& exec, const Indices& indices, const Rows& rows, Policies...) {
  using chosen = detail::chosen_policies<Policies...>;
  detail::require_plan_arguments<Exec, Indices, chosen>();
  using bounds_policy = typename chosen::template get<bounds_category, bounds::check>;
  const auto ref = detail::index_ref(indices);
  const std::int64_t table_rows = detail::rows_of_tables(rows);
  detail::require_plan_shapes(ref, table_rows, std::is_same_v<bounds_policy, bounds::clamp>);
  return detail::plan_rows_of<bounds_policy>(exec, ref, table_rows);
}

/// As above, with the arrays of the plan in memory of the caller, so that a step allocates no memory for
/// them.
///
///   workspace  rank-1 array of std::byte that kernels of `exec` reach (tensor<std::byte, device_space>; on a
///              host backend also a span), aligned to 16 bytes, with at least
///              plan_workspace_bytes(exec, number of indices, rows) bytes
///
/// The workspace must live until the plan is destroyed and all verbs with it have ended. It may be passed to
/// the next make_plan once the last of those verbs is enqueued: on any instance if the workspace is a
/// ferry::tensor, else on the same instance. The library still allocates a report from a pool, and for
/// pageable indices and a device a page-locked copy. Throws invalid_argument for a workspace that is too
/// small or misaligned.
template <class Exec, class Indices, class Rows, class Workspace, class... Policies>
  requires(detail::AnArray<Workspace>&& detail::Fits<detail::make_plan_arguments, const Exec&, const Indices&,
                                                     const Rows&, Workspace, Policies...>)
[[nodiscard]] row_plan make_plan(const Exec& exec, const Indices& indices, const Rows& rows,
                                 Workspace&& workspace, Policies...) {
  using chosen = detail::chosen_policies<Policies...>;
  detail::require_plan_arguments<Exec, Indices, chosen>();
  static_assert(std::is_same_v<typename detail::traits_of<Workspace>::value_type, std::byte>,
                "ferry: the workspace of make_plan must be an array of std::byte that may be written.");
  detail::require_reach<Exec, Workspace>();
  detail::require_lasting<Workspace>();
  using bounds_policy = typename chosen::template get<bounds_category, bounds::check>;
  const auto ref = detail::index_ref(indices);
  const std::int64_t table_rows = detail::rows_of_tables(rows);
  detail::require_plan_shapes(ref, table_rows, std::is_same_v<bounds_policy, bounds::clamp>);
  const auto room = make_ref(workspace);
  detail::require_workspace(room.note(), room.data, room.is_contiguous(),
                            detail::bytes_of_plan(exec, ref.rows(), table_rows));
  detail::require_direct_reach("make_plan", exec, room);
  return detail::plan_rows_of<bounds_policy>(exec, ref, table_rows, room);
}

}  // namespace ferry
