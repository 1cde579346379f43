// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/execution_space.hpp>
#include <ferry/plan/make_plan.hpp>
#include <ferry/plan/row_plan.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/tensor/detail/array_ref.hpp>
#include <ferry/tensor/slice.hpp>
#include <ferry/tensor/tensor.hpp>

#include <cstdint>
#include <type_traits>
#include <utility>

namespace ferry {

/// The different rows of a batch. For the indices {7, 2, 7, 5}: rows {2, 5, 7}, inverse {2, 0, 2, 1} and
/// counts {1, 1, 2}. All are rank-1 arrays of std::int64_t, arguments of verbs like any others.
template <class Space>
struct unique_indices {
  using slice = tensor_slice<const std::int64_t, Space, extents<dyn>>;  ///< of rank 1

  slice rows;                                        ///< the different rows, ascending
  slice inverse;                                     ///< the place in `rows` of each position; -1 for no row
  tensor<std::int64_t, Space, extents<dyn>> counts;  ///< how many positions name each row
  row_plan plan;                                     ///< owns rows and inverse; for the verbs of the batch
};

namespace detail {

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
  auto named = plan.unique_rows<space>();
  auto inverse = plan.inverse<space>();
  return unique_indices<space>{std::move(named), std::move(inverse), std::move(counts), std::move(plan)};
}

}  // namespace ferry
