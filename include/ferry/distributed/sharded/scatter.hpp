// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/sharded/detail/coded_shard.hpp>
#include <ferry/distributed/sharded/detail/sharded_write.hpp>
#include <ferry/distributed/sharded/detail/values_in_place.hpp>
#include <ferry/distributed/sharded/detail/with_routes.hpp>
#include <ferry/distributed/sharded/make_plan.hpp>
#include <ferry/distributed/sharded/sharded_table.hpp>
#include <ferry/quantized/detail/quantized_access.hpp>
#include <ferry/quantized/detail/quantized_verbs.hpp>
#include <ferry/quantized/detail/scatter_quantized.hpp>
#include <ferry/rows/detail/row_jobs.hpp>
#include <ferry/rows/scatter.hpp>

#include <type_traits>

namespace ferry {

namespace detail {

template <class Choice, class Exec, class Table, class Named, class Values>
struct sharded_scatter
    : sharded_write<sharded_scatter<Choice, Exec, Table, Named, Values>, Choice, Exec, Table, Named, Values> {
  using sharded_scatter::sharded_write::sharded_write;
  using policies_of_shard = shard_policies<typename Choice::chosen, typename Choice::duplicates>;

  template <class Rows, class RowValues>
  void update(int rank, const Rows& rows, const RowValues& sources) {
    auto&& shard = shard_of(this->table, rank);
    if constexpr (has_coded_rows<Table>)
      scatter_numbers<chosen_policies<policies_of_shard>>(this->instance(rank), shard, rows_named_by(rows),
                                                          read_only(make_ref(sources)))
          .join();
    else
      scatter(this->instance(rank), shard, rows, sources, policies_of_shard{}).join();
  }
  template <class Value>
  void update_in_place(int rank, const values_in_place<Value>& sources) {
    auto&& shard = shard_of(this->table, rank);
    if constexpr (has_coded_rows<Table>) {
      scatter_numbers_by_plan<chosen_policies<policies_of_shard>>(this->instance(rank), shard, sources.plan,
                                                                  sources.values)
          .join();
    } else {
      using job = replace_job<typename Table::value_type, typename Table::memory_space>;
      const auto rows = make_ref(shard);
      write_in_place<verb::scatter, Choice>(this->instance(rank), rows, job{rows}, sources);
    }
  }
};

}  // namespace detail

/// table[indices[p]] = values[p] for the positions p of all ranks' batches, one after the other by rank.
/// Arguments and policies are those of scatter on an ordinary table; indices may also be a
/// sharded_plan, or a row_plan for tables of as many rows.
///
/// Rows of a sharded_quantized_table are encoded by their owners, as scatter does for a quantized_tensor, and
/// all ranks have set the same factor. Codes and scales are written one after the other: if memory runs out
/// between the two, the call throws bad_alloc with old scales, and can be repeated.
///
/// Collective, see sharded_table; a rank without values passes empty arrays, of the same element type. Blocks
/// until all ranks have written. ticket::wait() throws out_of_range on all ranks if one has a bad index,
/// naming the rank, and invalid_argument on all under duplicates::reject; nothing is then written anywhere.
/// Throws invalid_argument for shapes that do not fit, and peer_error if that happened to another rank.
template <class Exec, detail::ShardedRows Table, class Indices, class Values, class... Policies>
  requires(detail::Fits<detail::scatter_arguments, const Exec&, Table&, const Indices&, const Values&,
                        Policies...>)
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket scatter(
    const Exec& exec, Table& table, const Indices& indices, const Values& values, Policies...) {
  using asked = detail::writing_policies<Policies...>;
  using chosen = typename asked::chosen;
  detail::require_sharded_verb<Exec, Table, Indices, Values, chosen, true>();
  detail::require_scales_of_shards<Exec, Table>();
  if constexpr (detail::has_coded_rows<Table>) detail::require_quantizable<Values>();
  const auto sources = detail::read_only(make_ref(values));
  using value = std::remove_const_t<typename decltype(sources)::value_type>;
  const auto& named = detail::sharded_rows_named_by(indices);
  auto note = detail::note_of<chosen, value>("scatter", table);
  detail::sharded_scatter<detail::write_choice<asked, detail::reads_where_they_are<chosen>, false,
                                               !detail::has_coded_rows<Table>>,
                          Exec, Table, std::remove_cvref_t<decltype(named)>,
                          std::remove_const_t<decltype(sources)>>
      verb("scatter", exec, table, named, sources,
           detail::add_plan(detail::add_factor(note, table), indices));
  return verb.call.run(verb);
}

}  // namespace ferry
