// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/detail/bag_arguments.hpp>
#include <ferry/bags/detail/gather_tables.hpp>
#include <ferry/bags/detail/pool_bags.hpp>
#include <ferry/bags/detail/step_tables.hpp>
#include <ferry/bags/step_bags.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/rows/for_each_table.hpp>
#include <ferry/runtime/ticket.hpp>
#include <ferry/tensor/array_traits.hpp>

#include <type_traits>
#include <vector>

namespace ferry {

/// Pools bags of many tables in one launch, as FBGEMM's batched tables do.
///
///   tables    for_each_table of T tables, each with a width of its own
///   indices   rank-1 array of int32, uint32, int64 or uint64: those of the first table, then those of the
///             next one, and so on
///   offsets   as in gather_bags, of T * B bags: bag t * B + b is bag b of table t. Or one integer.
///   pooled    B rows of numbers, whose width is the sum of the widths of the tables: row b has the pooled
///             rows of bag b of every table, side by side
///   policies  pooling, bounds, and path::direct: the tables must be in memory that kernels of `exec` reach
///
/// The rest is as in gather_bags. Under bounds::check a part of a row that belongs to a bad bag keeps its
/// contents. Messages about bad indices and offsets name the table and the bag within it. Under bounds::clamp
/// wait() throws out_of_range for the indices of a table without rows.
template <class Exec, class T, class Space, class Indices, class Offsets, class Pooled, class... Policies>
  requires(detail::Fits<detail::gather_bags_arguments, const Exec&, const table_list<T, Space>&,
                        const Indices&, const Offsets&, Pooled, Policies...>)
[[nodiscard]] ticket gather_bags(const Exec& exec, const table_list<T, Space>& tables, const Indices& indices,
                                 const Offsets& offsets, Pooled&& pooled, Policies...) {
  using bag = detail::bag_policies<Policies...>;
  detail::require_table_list<Exec, T, Space, Indices, Offsets, Pooled, bag>();
  detail::require_output<Pooled>();
  return detail::gather_tables<bag>(exec, tables.tables, detail::index_ref(indices),
                                    detail::bags_named_by(offsets), detail::no_array{}, make_ref(pooled));
}

/// As above, with the weights of the positions, for pooling::sum and pooling::mean.
template <class Exec, class T, class Space, class Indices, class Offsets, class Pooled, class Weights,
          class... Policies>
  requires(detail::AnArray<Weights>&&
               detail::Fits<detail::gather_bags_arguments, const Exec&, const table_list<T, Space>&,
                            const Indices&, const Offsets&, Pooled, const Weights&, Policies...>)
[[nodiscard]] ticket gather_bags(const Exec& exec, const table_list<T, Space>& tables, const Indices& indices,
                                 const Offsets& offsets, Pooled&& pooled, const Weights& weights,
                                 Policies...) {
  using bag = detail::bag_policies<Policies...>;
  detail::require_table_list<Exec, T, Space, Indices, Offsets, Pooled, bag>();
  detail::require_output<Pooled>();
  static_assert(!bag::pooling::selects, "ferry: pooling::max takes no weights.");
  detail::require_weight_type<Exec, Weights>();
  return detail::gather_tables<bag>(exec, tables.tables, detail::index_ref(indices),
                                    detail::bags_named_by(offsets), make_ref(weights), make_ref(pooled));
}

/// step_bags on many tables, with one plan and one launch for all of them.
///
///   tables        for_each_table of T tables, none of them const
///   states        a range of T states, those of the tables in their order: a std::vector or a std::array
///                 of what make_state returned for each, or a std::span of them
///   indices       rank-1 array of int32, uint32, int64 or uint64: those of the first table, then those of
///                 the next one, and so on
///   offsets       as in gather_bags on many tables; every position must belong to a bag
///   pooled_grads  B rows of numbers, whose width is the sum of the widths of the tables: the gradients of
///                 bag b of every table, side by side
///   policies      pooling::sum or pooling::mean; path::direct: tables and states must be in memory that
///                 kernels of `exec` reach; bounds, step_count, rounding and nonfinite as in step
///
/// The bits are those of a step_bags for each table. The rest is as in step_bags: if the batch of one table
/// is bad, wait() throws, and all tables and states are unchanged. Messages about bad indices and offsets
/// name the table and the bag within it. Throws invalid_argument also if tables share memory with each
/// other or with the gradients. Under bounds::clamp wait() throws out_of_range for the indices of a table
/// without rows. nonfinite::reject and nonfinite::skip look at the gradients of all tables, also of those
/// without positions: under skip one number that is not finite skips the step of all tables. The scratch
/// memory is that of step_bags on the positions of all tables together, with one exception: on a device the
/// sums of rows that come often take a row as wide as the widest table for every 32 of these positions.
template <class Exec, class Rule, class T, class Space, class States, class Indices, class Offsets,
          class Grads, class... Policies>
  requires(detail::Fits<detail::step_bags_arguments, const Exec&, const Rule&, const table_list<T, Space>&,
                        States, const Indices&, const Offsets&, const Grads&, Policies...>)
[[nodiscard]] ticket step_bags(const Exec& exec, const Rule& rule, const table_list<T, Space>& tables,
                               States&& states, const Indices& indices, const Offsets& offsets,
                               const Grads& pooled_grads, Policies...) {
  using bag = detail::bag_policies<Policies...>;
  detail::require_table_step<Exec, Rule, T, Space, States, Indices, Offsets, Grads, bag>();
  return detail::step_tables<bag>(exec, rule, tables.tables, states, detail::index_ref(indices),
                                  detail::bags_named_by(offsets), make_ref(pooled_grads), detail::no_array{});
}

/// As above, with the weights of the positions, by which the shares are multiplied.
template <class Exec, class Rule, class T, class Space, class States, class Indices, class Offsets,
          class Grads, class Weights, class... Policies>
  requires(detail::AnArray<Weights>&& detail::Fits<detail::step_bags_arguments, const Exec&, const Rule&,
                                                   const table_list<T, Space>&, States, const Indices&,
                                                   const Offsets&, const Grads&, const Weights&, Policies...>)
[[nodiscard]] ticket step_bags(const Exec& exec, const Rule& rule, const table_list<T, Space>& tables,
                               States&& states, const Indices& indices, const Offsets& offsets,
                               const Grads& pooled_grads, const Weights& weights, Policies...) {
  using bag = detail::bag_policies<Policies...>;
  detail::require_table_step<Exec, Rule, T, Space, States, Indices, Offsets, Grads, bag>();
  detail::require_weight_type<Exec, Weights>();
  return detail::step_tables<bag>(exec, rule, tables.tables, states, detail::index_ref(indices),
                                  detail::bags_named_by(offsets), make_ref(pooled_grads), make_ref(weights));
}

/// Refuses the gradients of the weights. Does not compile.
template <class Exec, class Rule, class T, class Space, class States, class Indices, class Offsets,
          class Grads, class Weights, class WeightGrads, class... Policies>
  requires(detail::AnArray<Weights>&& detail::AnArray<WeightGrads>&& detail::Fits<
           detail::step_bags_arguments, const Exec&, const Rule&, const table_list<T, Space>&, States,
           const Indices&, const Offsets&, const Grads&, const Weights&, WeightGrads, Policies...>)
ticket step_bags(const Exec&, const Rule&, const table_list<T, Space>&, States&&, const Indices&,
                 const Offsets&, const Grads&, const Weights&, WeightGrads&&, Policies...) {
  static_assert(
      sizeof(T) == 0,
      "ferry: step_bags on several tables writes no gradients of weights; for them call it once for each table.");
  return {};
}

}  // namespace ferry
