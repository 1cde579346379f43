// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/sharded/detail/sharded_write.hpp>
#include <ferry/distributed/sharded/detail/values_in_place.hpp>
#include <ferry/distributed/sharded/detail/with_routes.hpp>
#include <ferry/distributed/sharded/make_plan.hpp>
#include <ferry/distributed/sharded/sharded_quantized_table.hpp>
#include <ferry/distributed/sharded/sharded_table.hpp>
#include <ferry/rows/scatter_add.hpp>

#include <type_traits>

namespace ferry {

namespace detail {

template <class Choice, class Exec, class Table, class Named, class Values>
struct sharded_scatter_add : sharded_write<sharded_scatter_add<Choice, Exec, Table, Named, Values>, Choice,
                                           Exec, Table, Named, Values> {
  using sharded_scatter_add::sharded_write::sharded_write;

  template <class Rows, class RowValues>
  void update(int rank, const Rows& rows, const RowValues& sources) {
    scatter_add(this->instance(rank), this->table.shard(rank), rows, sources,
                shard_policies<typename Choice::chosen, typename Choice::duplicates>{})
        .join();
  }
  template <class Value>
  void update_in_place(int rank, const values_in_place<Value>& sources) {
    const auto shard = make_ref(this->table.shard(rank));
    using job = add_job<typename Table::value_type, typename Table::memory_space>;
    write_in_place<verb::scatter_add, Choice>(this->instance(rank), shard, job{shard}, sources);
  }
};

}  // namespace detail

/// table[r] += the combined values of all positions that name row r, in all ranks' batches, in the order
/// (rank, position).
/// Arguments and policies are those of scatter_add on an ordinary table; indices may also be a
/// sharded_plan, or a row_plan for tables of as many rows. One more policy: reduce::in_order (default), or
/// reduce::by_rank, another order that sends fewer rows.
///
/// Collective, see sharded_table; a rank without values passes empty arrays, of the same element type. Blocks
/// until all ranks have written. ticket::wait() throws out_of_range on all ranks if one has a bad index,
/// naming the rank, and invalid_argument on all under duplicates::reject; nothing is then written anywhere.
/// Throws invalid_argument for shapes that do not fit, and peer_error if that happened to another rank.
template <class Exec, class T, class Space, class Spread, class Indices, class Values, class... Policies>
  requires(detail::Fits<detail::scatter_add_arguments, const Exec&, sharded_table<T, Space, Spread>&,
                        const Indices&, const Values&, Policies...>)
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket scatter_add(
    const Exec& exec, sharded_table<T, Space, Spread>& table, const Indices& indices, const Values& values,
    Policies...) {
  using asked = detail::summing_policies<Policies...>;
  using chosen = typename asked::chosen;
  detail::require_sharded_verb<Exec, sharded_table<T, Space, Spread>, Indices, Values, chosen, true>();
  const auto sources = detail::read_only(make_ref(values));
  using value = std::remove_const_t<typename decltype(sources)::value_type>;
  const auto& named = detail::sharded_rows_named_by(indices);
  detail::sharded_scatter_add<detail::write_choice<asked, detail::reads_where_they_are<chosen>>, Exec,
                              sharded_table<T, Space, Spread>, std::remove_cvref_t<decltype(named)>,
                              std::remove_const_t<decltype(sources)>>
      verb("scatter_add", exec, table, named, sources,
           detail::add_plan(detail::note_of<chosen, typename asked::reduce, value>("scatter_add", table),
                            indices));
  return verb.call.run(verb);
}

/// Refuses quantized rows. Does not compile.
template <class Exec, class Q, class Space, class ScaleSpace, class Spread, class... Rest>
ticket scatter_add(const Exec&, sharded_quantized_table<Q, Space, ScaleSpace, Spread>&, const Rest&...) {
  static_assert(
      sizeof(Exec) == 0,
      "ferry: scatter_add adds to rows of numbers; the rows of a sharded_quantized_table are replaced by scatter and trained by step.");
  return {};
}

}  // namespace ferry
