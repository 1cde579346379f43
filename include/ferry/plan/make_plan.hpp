// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/execution_space.hpp>
#include <ferry/error.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/detail/refusals.hpp>
#include <ferry/plan/detail/sort_indices.hpp>
#include <ferry/plan/row_plan.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/policy/policies.hpp>
#include <ferry/runtime/detail/array_checks.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/tensor/array_traits.hpp>
#include <ferry/tensor/detail/array_ref.hpp>
#include <ferry/tensor/slice.hpp>
#include <ferry/tensor/tensor.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

namespace ferry {

namespace detail {

inline constexpr std::size_t plan_workspace_alignment = 16;

template <ExecutionSpace Exec>
std::size_t bytes_of_plan(const Exec& exec, std::int64_t positions, std::int64_t rows);

/// Throws invalid_argument for a workspace that is no contiguous array of rank 1, too small or misaligned.
void require_workspace(const array_note& room, const void* data, bool contiguous, std::size_t needed);

/// The rows of the tables that a plan is for: a number, or those of one of the tables.
template <class Rows>
std::int64_t rows_of_tables(const Rows& rows) {
  if constexpr (std::integral<Rows>)
    return row_number(rows);
  else if constexpr (AnArray<Rows>)
    return make_ref(rows).rows();
  else
    return static_cast<std::int64_t>(rows.rows());
}

[[noreturn]] void refuse_plan_size(const std::string& positions, const std::string& rows);

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

/// The memory space of plans by this execution space.
template <class Exec>
using space_of_plans =
    std::conditional_t<is_host_exec<Exec> && !device_is_host<Exec>, pageable_space, device_space>;

/// Throws out_of_range if the plan found an index outside of its table.
void require_indices_inside(const char* verb, const row_plan& plan);

/// counts[i] = the number of positions of row i of the plan. Blocks.
template <ExecutionSpace Exec>
void count_positions(const Exec& exec, const row_plan& plan,
                     const array_ref<std::int64_t, space_of_plans<Exec>>& counts);

}  // namespace detail

/// Size in bytes of the workspace that make_plan needs for `positions` indices into tables of `rows` rows, a
/// number or one of the tables. It is 64 bytes per position for the plan's arrays, on a device 2 more, and
/// the scratch memory of the sort. The size grows with `positions` and does not depend on the values of the
/// indices, so a workspace for the largest batch serves all. Throws invalid_argument for negative numbers,
/// and for numbers that make_plan refuses.
template <class Exec, std::integral Positions, class Rows>
  requires(detail::Fits<detail::plan_workspace_arguments, const Exec&, Positions, const Rows&>)
[[nodiscard]] std::size_t plan_workspace_bytes(const Exec& exec, Positions positions, const Rows& rows) {
  const std::int64_t table_rows = detail::rows_of_tables(rows);
  if (std::cmp_less(positions, 0) || table_rows < 0)
    detail::refuse_plan_size(detail::joined(positions), detail::joined(table_rows));
  return detail::bytes_of_plan(exec, static_cast<std::int64_t>(positions), table_rows);
}

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

/// The different rows of a batch. For the indices {7, 2, 7, 5}: rows {2, 5, 7}, inverse {2, 0, 2, 1} and
/// counts {1, 1, 2}. All are rank-1 arrays of std::int64_t, arguments of verbs like any others.
template <class Space>
struct unique_indices {
  using slice = tensor_slice<const std::int64_t, Space, extents<dyn>>;  ///< of rank 1

  slice rows;                                        ///< the different rows, ascending
  slice inverse;                                     ///< the index in `rows` of each position; -1 for no row
  tensor<std::int64_t, Space, extents<dyn>> counts;  ///< how many positions name each row
  row_plan plan;                                     ///< owns rows and inverse; for the verbs of the batch
};

/// The different rows among the indices of a batch, where each position finds its row, and how often each row
/// comes: numpy.unique with return_inverse and return_counts, by the sort of make_plan.
///
///   exec      the execution space instance that sorts
///   indices   contiguous array of rank 1, or of rank 2, which is read row by row, of int32, uint32, int64
///             or uint64
///   rows      rows of the tables that the indices are for, or one of these tables
///   policies  bounds  default bounds::check; under bounds::skip bad indices have no row
///
/// Blocks until the rows are counted, because their number is the length of the arrays. These lie in
/// device_space, for a host execution space of a program with a device in pageable_space. Throws out_of_range
/// for an index outside of [0, rows) under bounds::check, and what make_plan throws.
template <class Exec, class Indices, class Rows, class... Policies>
  requires(detail::Fits<detail::unique_arguments, const Exec&, const Indices&, const Rows&, Policies...>)
[[nodiscard]] auto unique(const Exec& exec, const Indices& indices, const Rows& rows, Policies... policies) {
  using space = detail::space_of_plans<Exec>;
  static_assert(
      std::is_same_v<decltype(make_plan(exec, indices, rows, policies...)), row_plan>,
      "ferry: unique counts the rows of one batch on its device; give it the number of rows of a sharded table.");
  row_plan plan = make_plan(exec, indices, rows, policies...);
  const std::int64_t count = plan.unique_count();
  detail::require_indices_inside("unique", plan);
  tensor<std::int64_t, space, extents<dyn>> counts("counts", detail::memory_home(exec), count);
  detail::count_positions(exec, plan, make_ref(counts));
  auto unique_rows = plan.unique_rows<space>();
  auto inverse = plan.inverse<space>();
  return unique_indices<space>{std::move(unique_rows), std::move(inverse), std::move(counts),
                               std::move(plan)};
}

}  // namespace ferry
