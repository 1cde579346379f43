// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/communicator/detail/payload.hpp>
#include <ferry/distributed/sharded/detail/coded_shard.hpp>
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
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/runtime/ticket.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

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
        shard_exec, plain_rows(rows), job{rows}, plan, values)
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
  using value = std::remove_const_t<typename decltype(sources)::value_type>;
  const auto& named = detail::sharded_rows_named_by(indices);
  using space = typename decltype(sources)::memory_space;
  using home = detail::payload_space<Exec, typename Table::memory_space, space>;
  using bounds_policy = typename chosen::template get<bounds_category, bounds::check>;
  using duplicates_policy = typename asked::duplicates;
  constexpr bool reads = detail::reads_in_place<chosen, Exec, Table, value, home>;
  auto note = detail::note_of<chosen, value>("scatter", table);
  detail::collective call(table.comm(), detail::add_plan(detail::add_factor(note, table), indices));
  return call.guarded([&]() -> ticket {
    ticket refused;
    detail::require_sharded_batch<Exec, chosen>("scatter", call, table, named, sources);
    detail::require_array_device("scatter", exec, sources);
    detail::sharded_batch<Exec, Table> batch(call, "scatter", exec, table);
    const auto owned =
        detail::values_of_positions<bounds_policy>(batch, "scatter", exec, table, named, sources);
    batch.meet({}, batch.template offer<reads>(owned), false);
    if (batch.refuses(refused)) return refused;
    const auto received = batch.template receive<home>(owned, static_cast<std::int64_t>(table.width()));
    if constexpr (duplicates_policy::forbids) {
      batch.find_duplicates(received);
      if (batch.refuses(refused)) return refused;
    }
    detail::write_jointly(call.first(), call.last(), [&](int r) {
      const auto& rows = received[static_cast<std::size_t>(r - call.first())];
      const Exec shard_exec = batch.instance(r);
      const detail::fence_on_exception<Exec> reading(shard_exec);  // memory of other ranks
      detail::scatter_to_shard<chosen, duplicates_policy>(shard_exec, table, r, rows.plan, rows.values);
    });
    call.agree();  // no rank returns before all have written
    call.close();
    return {};
  });
}

}  // namespace ferry
