// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/communicator/detail/payload.hpp>
#include <ferry/distributed/sharded/detail/shard_rule.hpp>
#include <ferry/distributed/sharded/detail/sharded_batch.hpp>
#include <ferry/distributed/sharded/detail/sharded_verb.hpp>
#include <ferry/distributed/sharded/detail/values_of_batch.hpp>
#include <ferry/distributed/sharded/sharded_plan.hpp>
#include <ferry/distributed/sharded/sharded_quantized_table.hpp>
#include <ferry/distributed/sharded/sharded_table.hpp>
#include <ferry/plan/row_plan.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/quantized/detail/quantized_access.hpp>
#include <ferry/quantized/detail/quantized_verbs.hpp>
#include <ferry/quantized/detail/scatter_quantized.hpp>
#include <ferry/rows/detail/row_jobs.hpp>
#include <ferry/rows/detail/update_rows.hpp>
#include <ferry/rows/scatter.hpp>
#include <ferry/rows/scatter_add.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/runtime/ticket.hpp>
#include <ferry/tensor/detail/array_ref.hpp>
#include <ferry/tensor/detail/numeric.hpp>
#include <ferry/tensor/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace ferry {

namespace detail {

/// Rows of the shard of a rank = values, by a plan of the rows.
template <class Chosen, class Duplicates, class Exec, class Table, class T, class Space>
void scatter_to_shard(const Exec& shard_exec, Table& table, int rank, const row_plan& plan,
                      const array_ref<const T, Space>& values) {
  using policies_of_shard = chosen_policies<shard_policies<Chosen, Duplicates>>;
  auto&& shard = shard_of(table, rank);
  if constexpr (has_coded_rows<Table>) {
    scatter_numbers<policies_of_shard>(shard_exec, shard, plan, values).join();
  } else {
    using job = replace_job<typename Table::value_type, typename Table::memory_space>;
    const auto rows = make_ref(shard);
    update_rows<verb::scatter, policies_of_shard, shard_duplicates_t<Duplicates>>(
        row_update{shard_exec, plain_rows(rows), job{rows}, plan, values})
        .join();
  }
}

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
  using types = detail::write_types<asked, Exec, Table, std::remove_const_t<decltype(sources)>>;
  const auto& named = detail::sharded_rows_named_by(indices);
  auto note = detail::note_of<chosen, typename types::value>("scatter", table);
  detail::collective call(table.comm(), detail::add_plan(detail::add_factor(note, table), indices));
  try {
    ticket refused;
    detail::require_sharded_batch<Exec, chosen>("scatter", call, table, named, sources);
    detail::require_array_device("scatter", exec, sources);
    detail::sharded_batch<Exec, Table> batch(call, "scatter", exec, table);
    const auto owned = detail::values_of_positions<typename types::bounds_policy>(batch, "scatter", exec,
                                                                                  table, named, sources);
    const auto received = batch.template exchange<types>(owned, {}, false, refused);
    if (received.empty()) return refused;
    const auto write = [&](int r) {
      const auto& rows = received[static_cast<std::size_t>(r - call.first())];
      const Exec shard_exec = batch.instance(r);
      const detail::fence_on_exception<Exec> reading(shard_exec);  // memory of other ranks
      detail::scatter_to_shard<chosen, typename types::duplicates_policy>(shard_exec, table, r, rows.plan,
                                                                          rows.values);
    };
    call.is_whole() ? detail::write_jointly(call.first(), call.last(), write) : write(call.rank());
    call.agree();  // no rank returns before all have written
    call.close();
    return {};
  } catch (...) {
    call.report_failure();
    throw;
  }
}

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
  using table_type = sharded_table<T, Space, Spread>;
  using types = detail::write_types<asked, Exec, table_type, std::remove_const_t<decltype(sources)>>;
  using duplicates_policy = typename types::duplicates_policy;
  using policies_of_shard = detail::chosen_policies<detail::shard_policies<chosen, duplicates_policy>>;
  const auto& named = detail::sharded_rows_named_by(indices);
  auto note = detail::note_of<chosen, typename asked::reduce, typename types::value>("scatter_add", table);
  detail::collective call(table.comm(), detail::add_plan(note, indices));
  try {
    ticket refused;
    tensor<typename types::sent, typename types::payload_space> sums;
    detail::require_sharded_batch<Exec, chosen>("scatter_add", call, table, named, sources);
    detail::require_array_device("scatter_add", exec, sources);
    detail::sharded_batch<Exec, table_type> batch(call, "scatter_add", exec, table);
    const auto owned = detail::values_for_owners<typename asked::reduce, typename types::bounds_policy>(
        batch, "scatter_add", exec, table, named, sources, sums);
    const auto received = batch.template exchange<types>(owned, {}, false, refused);
    if (received.empty()) return refused;
    const auto write = [&](int r) {
      const auto& rows = received[static_cast<std::size_t>(r - call.first())];
      const Exec shard_exec = batch.instance(r);
      const detail::fence_on_exception<Exec> reading(shard_exec);  // memory of other ranks
      const auto shard = make_ref(table.shard(r));
      detail::update_rows<verb::scatter_add, policies_of_shard,
                          detail::shard_duplicates_t<duplicates_policy>>(
          detail::row_update{shard_exec, detail::plain_rows(shard), detail::add_job<T, Space>{shard},
                             rows.plan, rows.values})
          .join();
    };
    call.is_whole() ? detail::write_jointly(call.first(), call.last(), write) : write(call.rank());
    call.agree();  // no rank returns before all have written
    call.close();
    return {};
  } catch (...) {
    call.report_failure();
    throw;
  }
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
