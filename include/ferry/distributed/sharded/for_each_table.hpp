// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/detail/bag_arguments.hpp>
#include <ferry/bags/detail/bag_list.hpp>
#include <ferry/bags/detail/step_tables.hpp>
#include <ferry/bags/for_each_table.hpp>
#include <ferry/distributed/sharded/detail/verbs_of_tables.hpp>
#include <ferry/distributed/sharded/sharded_state.hpp>
#include <ferry/distributed/sharded/sharded_table.hpp>
#include <ferry/distributed/sharded/step_bags.hpp>
#include <ferry/plan/detail/refusals.hpp>
#include <ferry/runtime/ticket.hpp>

#include <iterator>
#include <type_traits>
#include <vector>

namespace ferry {

/// Sharded tables of one type, of any numbers and widths of rows; made by for_each_table. The tables must
/// outlive it.
template <class Table>
struct sharded_table_list {
  using table_type = Table;    ///< const if any table is
  std::vector<Table*> tables;  ///< in the order in which they were given
};

template <class Table>
inline constexpr bool detail::is_table_list<sharded_table_list<Table>> = true;

namespace detail {
template <class T, class Space, class Spread>
inline constexpr bool has_own_list<sharded_table<T, Space, Spread>> = true;

template <class First, class... More>
consteval void require_one_type() {
  static_assert(
      (std::is_same_v<std::remove_cv_t<First>, std::remove_cv_t<More>> && ...),
      "ferry: for_each_table takes sharded tables of one type: of one element type, memory space and sharding.");
}

/// True if T is the state of a sharded table.
template <class T>
inline constexpr bool is_state_of_shards = false;
template <class Rule, class T, class Space>
inline constexpr bool is_state_of_shards<sharded_state<Rule, T, Space>> = true;

template <class... Tables>
consteval void require_named() {
  static_assert(
      (std::is_lvalue_reference_v<Tables> && ...),
      "ferry: for_each_table refers to sharded tables, so it takes none that ends with the statement; keep them in variables.");
}

/// Checks the types of step_bags on several sharded tables.
template <class Exec, class Rule, class Table, class States, class Indices, class Offsets, class Grads,
          class Bag>
consteval void require_shards_step() {
  using element = typename Table::value_type;
  require_list_step<Exec, Rule, std::conditional_t<std::is_const_v<Table>, const element, element>,
                    typename Table::memory_space, States, Indices, Offsets, Grads, Bag>();
  static_assert(
      is_state_of_shards<std::remove_cv_t<typename std::remove_reference_t<States>::value_type>>,
      "ferry: the tables of for_each_table are sharded, so their states must be those of sharded tables; call make_state with each table.");
}

}  // namespace detail

/// Sharded tables as one argument of gather_bags and of step_bags, for which none of them may be const. They
/// are of one group of ranks. Does not compile for a temporary table.
template <class First, class... More>
  requires(detail::has_own_list<std::remove_cvref_t<First>> &&
           (detail::has_own_list<std::remove_cvref_t<More>> && ...))
[[nodiscard]] auto for_each_table(First&& first, More&&... more) {
  detail::require_one_type<std::remove_reference_t<First>, std::remove_reference_t<More>...>();
  detail::require_named<First, More...>();
  using table = std::remove_cvref_t<First>;
  constexpr bool is_const = (std::is_const_v<std::remove_reference_t<First>> || ... ||
                             std::is_const_v<std::remove_reference_t<More>>);
  return sharded_table_list<std::conditional_t<is_const, const table, table>>{{&first, &more...}};
}

/// As above, of the tables of a range, for example a std::vector of them.
template <class Tables>
  requires(detail::is_range_of_own_lists<std::remove_reference_t<Tables>>)
[[nodiscard]] auto for_each_table(Tables&& range) {
  using table = std::remove_reference_t<decltype(*std::ranges::begin(range))>;
  if constexpr (!std::ranges::enable_borrowed_range<std::remove_cvref_t<Tables>>)
    detail::require_named<Tables>();
  sharded_table_list<table> list;
  for (auto& part : range) list.tables.push_back(&part);
  return list;
}

/// gather_bags from several sharded tables. Arguments, policies and bits are those of gather_bags from
/// several tables; each rank passes a batch of its own. The ranks meet as often as for one table.
///
/// Collective, see sharded_table: all ranks name the same tables in the same order; a rank without bags
/// passes empty arrays. Blocks until the rows are pooled. ticket::wait() throws out_of_range for bad indices
/// and offsets of this rank; other ranks do not learn of them. Throws invalid_argument for arguments that do
/// not fit, and for tables of different groups; peer_error if that happened to another rank, protocol_error
/// if the ranks' tables differ.
template <class Exec, class Table, class Indices, class Offsets, class Pooled, class... Policies>
  requires(detail::Fits<detail::gather_bags_arguments, const Exec&, const sharded_table_list<Table>&,
                        const Indices&, const Offsets&, Pooled, Policies...>)
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket gather_bags(
    const Exec& exec, const sharded_table_list<Table>& tables, const Indices& indices, const Offsets& offsets,
    Pooled&& pooled, Policies...) {
  using bag = detail::bag_policies<Policies...>;
  detail::require_table_list<Exec, typename Table::value_type, typename Table::memory_space, Indices, Offsets,
                             Pooled, bag>();
  detail::require_output<Pooled>();
  return detail::pool_tables_of_shards<Policies...>(exec, tables.tables, indices, offsets, pooled,
                                                    detail::no_array{});
}

/// As above, with the weights of the positions, for pooling::sum and pooling::mean.
template <class Exec, class Table, class Indices, class Offsets, class Pooled, class Weights,
          class... Policies>
  requires(detail::AnArray<Weights>&&
               detail::Fits<detail::gather_bags_arguments, const Exec&, const sharded_table_list<Table>&,
                            const Indices&, const Offsets&, Pooled, const Weights&, Policies...>)
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket gather_bags(
    const Exec& exec, const sharded_table_list<Table>& tables, const Indices& indices, const Offsets& offsets,
    Pooled&& pooled, const Weights& weights, Policies...) {
  using bag = detail::bag_policies<Policies...>;
  detail::require_table_list<Exec, typename Table::value_type, typename Table::memory_space, Indices, Offsets,
                             Pooled, bag>();
  detail::require_output<Pooled>();
  static_assert(!bag::pooling::selects, "ferry: pooling::max takes no weights.");
  detail::require_weight_type<Exec, Weights>();
  return detail::pool_tables_of_shards<Policies...>(exec, tables.tables, indices, offsets, pooled,
                                                    detail::read_only(make_ref(weights)));
}

/// step_bags on several sharded tables: the owners step on the rows of all tables in one launch, with the
/// gradients of the bags of all ranks. The ranks meet as often as for one table.
///
/// Arguments and policies are those of step_bags on several tables; each rank passes a batch of its own, in
/// which all tables have the same number of bags. The states are those that make_state made for the tables,
/// in their order. The bits are those of a step_bags for each table.
///
/// Collective, see sharded_table: all ranks name the same tables in the same order. Blocks until all ranks
/// have written. If the batch of one rank for one table is bad, ticket::wait() throws on all ranks what the
/// step of one table does, naming rank, table and bag, and nothing is written to any table. Throws
/// invalid_argument, before anything is written, for arguments that do not fit, and for tables of different
/// groups or one that comes twice; peer_error if that happened to another rank, and protocol_error if the
/// ranks' tables differ. A list without tables is refused on its rank; the others wait for it, up to their
/// deadline.
template <class Exec, class Rule, class Table, class States, class Indices, class Offsets, class Grads,
          class... Policies>
  requires(
      detail::Fits<detail::step_bags_arguments, const Exec&, const Rule&, const sharded_table_list<Table>&,
                   States, const Indices&, const Offsets&, const Grads&, Policies...>)
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket step_bags(
    const Exec& exec, const Rule& rule, const sharded_table_list<Table>& tables, States&& states,
    const Indices& indices, const Offsets& offsets, const Grads& pooled_grads, Policies...) {
  using bag = detail::bag_policies<Policies...>;
  detail::require_shards_step<Exec, Rule, Table, States, Indices, Offsets, Grads, bag>();
  return detail::step_tables_of_shards<Policies...>(exec, rule, tables.tables, states, indices, offsets,
                                                    pooled_grads, detail::no_array{});
}

/// As above, with the weights of the positions of this rank's batch, by which the shares are multiplied.
template <class Exec, class Rule, class Table, class States, class Indices, class Offsets, class Grads,
          class Weights, class... Policies>
  requires(detail::AnArray<Weights>&& detail::Fits<detail::step_bags_arguments, const Exec&, const Rule&,
                                                   const sharded_table_list<Table>&, States, const Indices&,
                                                   const Offsets&, const Grads&, const Weights&, Policies...>)
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket step_bags(
    const Exec& exec, const Rule& rule, const sharded_table_list<Table>& tables, States&& states,
    const Indices& indices, const Offsets& offsets, const Grads& pooled_grads, const Weights& weights,
    Policies...) {
  using bag = detail::bag_policies<Policies...>;
  detail::require_shards_step<Exec, Rule, Table, States, Indices, Offsets, Grads, bag>();
  detail::require_weight_type<Exec, Weights>();
  return detail::step_tables_of_shards<Policies...>(exec, rule, tables.tables, states, indices, offsets,
                                                    pooled_grads, detail::read_only(make_ref(weights)));
}

/// Refuses the gradients of the weights. Does not compile.
template <class Exec, class Rule, class Table, class States, class Indices, class Offsets, class Grads,
          class Weights, class WeightGrads, class... Policies>
  requires(detail::AnArray<Weights>&& detail::AnArray<WeightGrads>&& detail::Fits<
           detail::step_bags_arguments, const Exec&, const Rule&, const sharded_table_list<Table>&, States,
           const Indices&, const Offsets&, const Grads&, const Weights&, WeightGrads, Policies...>)
ticket step_bags(const Exec&, const Rule&, const sharded_table_list<Table>&, States&&, const Indices&,
                 const Offsets&, const Grads&, const Weights&, WeightGrads&&, Policies...) {
  static_assert(
      sizeof(Exec) == 0,
      "ferry: step_bags on several tables writes no gradients of weights; for them call it once for each table.");
  return {};
}

}  // namespace ferry
