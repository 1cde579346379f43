// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/detail/bag_arguments.hpp>
#include <ferry/bags/detail/pool_bags.hpp>
#include <ferry/concepts/element.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/detail/index_access.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/rows/detail/row_access.hpp>
#include <ferry/runtime/ticket.hpp>

namespace ferry {

namespace detail {

/// The elements that rows of the table are pooled as.
template <class Table>
using pooled_element = typename access_to<Table, true>::gathered;

template <class Exec, class Table, class Indices, class Offsets, class Pooled, class Bag>
consteval void require_bag_verb() {
  using access = access_to<Table, true>;
  require_row_verb<Exec, typename access::checked, Indices, Pooled, typename Bag::chosen, false>();
  require_offsets<Exec, Offsets>();
  static_assert(
      !Bag::chosen::template get<path_category, path::automatic>::sorts,
      "ferry: gather_bags adds rows in the order of their positions, so path::ordered and path::cooperative, which visit rows in the order of the table, are not for it.");
  static_assert(NumberElement<pooled_element<Table>> && NumberElement<typename traits_of<Pooled>::value_type>,
                "ferry: bags of rows are pooled by arithmetic, so table and pooled rows must hold numbers.");
  access::template require<Exec, typename Bag::chosen>();
  if constexpr (is_quantized<Table>)
    static_assert(
        !by_host_alone<typename Bag::chosen::template get<path_category, path::automatic>> ||
            access::is_read_by_host || !access::memory_space::is_host_accessible,
        "ferry: path::staged pools the rows of host memory there, so codes and scales must both be in host memory; use path::direct.");
}

/// Checks and pools. `extra` is no_array, the weights of the positions, or the positions of the maxima.
template <class Bag, class Exec, class Table, class Indices, class Offsets, class Pooled, class Extra>
ticket pool_rows_of(const Exec& exec, const Table& table, const Indices& indices, const Offsets& offsets,
                    Pooled& pooled, const Extra& extra) {
  using path_policy = typename Bag::chosen::template get<path_category, path::automatic>;
  using bounds_policy = typename Bag::chosen::template get<bounds_category, bounds::check>;
  const access_to<Table, true> access(table, "gather_bags");
  const auto out = make_ref(pooled);
  const auto& batch = rows_named_by(indices);
  const auto bags = bags_named_by(offsets);
  require_bag_batch<Bag, Exec>(access, batch, bags, extra, out);
  return pool_bags<path_policy, typename Bag::pooling, bounds_policy>(exec, access, batch, bags, extra, out);
}

}  // namespace detail

/// pooled[b] = the rows of bag b, pooled: table[indices[p]] for the positions p from offsets[b] to
/// offsets[b + 1]. What torch.nn.EmbeddingBag computes, in one pass; the rows of the positions are never in
/// memory.
///
///   exec      the execution space instance that the work is enqueued on
///   table     rows x width of numbers, or a quantized_tensor; any memory space
///   indices   rank-1 array of int32, uint32, int64 or uint64, or a row_plan
///   offsets   rank-1 array of such integers, one per bag and the end of the last bag; without that end the
///             last bag has all remaining positions, as in torch. Or one integer: the number of positions of
///             every bag.
///   pooled    one row of numbers per bag; must not overlap the table
///   policies  pooling  default pooling::mean
///             path     default path::automatic; path::direct, or path::staged, by which the host pools rows
///                      of host memory and the pooled rows travel
///             bounds   default bounds::check; a plan has its own
///
/// Rows are added in the order of their positions, beginning with 0; those of a bag of 1024 positions or more
/// in pieces, whose sums are then added, see docs/bags.md. That is in double if table, weights or pooled are
/// double, or if a table of integers has weights; in 64 bits if the table holds integers; else in float. So
/// the bits are the same on every backend and for every number of threads. Bags without positions become 0.
/// Positions under bounds::skip are left out and not counted, as torch's padding_idx. Positions outside of
/// all bags are not read.
///
/// Ordering, lifetimes and errors are those of gather. ticket::wait() throws out_of_range under bounds::check
/// for indices outside of the table, and unless bounds are unchecked for offsets that are negative, decrease
/// or exceed the number of positions. The bags concerned keep their contents, the others are pooled.
template <class Exec, class Table, class Indices, class Offsets, class Pooled, class... Policies>
  requires(detail::takes_bags<Table>&& detail::Fits<detail::gather_bags_arguments, const Exec&, const Table&,
                                                    const Indices&, const Offsets&, Pooled, Policies...>)
[[nodiscard]] ticket gather_bags(const Exec& exec, const Table& table, const Indices& indices,
                                 const Offsets& offsets, Pooled&& pooled, Policies...) {
  using bag = detail::bag_policies<Policies...>;
  detail::require_bag_verb<Exec, Table, Indices, Offsets, Pooled, bag>();
  detail::require_output<Pooled>();
  return detail::pool_rows_of<bag>(exec, table, indices, offsets, pooled, detail::no_array{});
}

/// As above, with one more array:
///
///   extra     under pooling::sum and pooling::mean the weights of the positions, a rank-1 array of numbers:
///             each row is multiplied by the weight of its position. Weights of a mean do not change what it
///             divides by.
///             Under pooling::max the array that receives, for each bag and column, the position that the
///             maximum comes from: bags x width of int32 or int64, -1 for empty bags. step_bags takes it.
template <class Exec, class Table, class Indices, class Offsets, class Pooled, class Extra, class... Policies>
  requires(detail::takes_bags<Table>&& detail::AnArray<Extra>&&
               detail::Fits<detail::gather_bags_arguments, const Exec&, const Table&, const Indices&,
                            const Offsets&, Pooled, Extra, Policies...>)
[[nodiscard]] ticket gather_bags(const Exec& exec, const Table& table, const Indices& indices,
                                 const Offsets& offsets, Pooled&& pooled, Extra&& extra, Policies...) {
  using bag = detail::bag_policies<Policies...>;
  detail::require_bag_verb<Exec, Table, Indices, Offsets, Pooled, bag>();
  detail::require_output<Pooled>();
  detail::require_bag_extra<Exec, typename bag::pooling, Extra>();
  return detail::pool_rows_of<bag>(exec, table, indices, offsets, pooled, make_ref(extra));
}

}  // namespace ferry
