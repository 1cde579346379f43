// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/communicator/detail/payload.hpp>
#include <ferry/distributed/sharded/detail/sharded_batch.hpp>
#include <ferry/distributed/sharded/detail/sharded_verb.hpp>
#include <ferry/distributed/sharded/detail/values_of_batch.hpp>
#include <ferry/distributed/sharded/sharded_plan.hpp>
#include <ferry/distributed/sharded/sharded_quantized_table.hpp>
#include <ferry/distributed/sharded/sharded_table.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/rows/detail/row_jobs.hpp>
#include <ferry/rows/detail/update_rows.hpp>
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
  using home = detail::payload_space<Exec, Space, typename decltype(sources)::memory_space>;
  using bounds_policy = typename chosen::template get<bounds_category, bounds::check>;
  using duplicates_policy = typename asked::duplicates;
  using sum = std::conditional_t<asked::reduce::sums_locally, accumulation_t<value>, value>;
  using table_type = sharded_table<T, Space, Spread>;
  constexpr bool reads = detail::reads_in_place<chosen, Exec, table_type, sum, home>;
  using policies_of_shard = detail::chosen_policies<detail::shard_policies<chosen, duplicates_policy>>;
  using job = detail::add_job<T, Space>;
  detail::collective call(
      table.comm(),
      detail::add_plan(detail::note_of<chosen, typename asked::reduce, value>("scatter_add", table),
                       indices));
  return call.guarded([&]() -> ticket {
    ticket refused;
    tensor<sum, home> sums;
    detail::require_sharded_batch<Exec, chosen>("scatter_add", call, table, named, sources);
    detail::require_array_device("scatter_add", exec, sources);
    detail::sharded_batch<Exec, table_type> batch(call, "scatter_add", exec, table);
    const auto owned = detail::values_for_owners<typename asked::reduce, bounds_policy>(
        batch, "scatter_add", exec, table, named, sources, sums);
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
      const auto shard = make_ref(table.shard(r));
      detail::update_rows<verb::scatter_add, policies_of_shard,
                          detail::shard_duplicates_t<duplicates_policy>>(
          detail::row_update{shard_exec, detail::plain_rows(shard), job{shard}, rows.plan, rows.values})
          .join();
    });
    call.agree();  // no rank returns before all have written
    call.close();
    return {};
  });
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
