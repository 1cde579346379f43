// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/sharded/detail/gather_peers.hpp>
#include <ferry/distributed/sharded/detail/gather_together.hpp>
#include <ferry/distributed/sharded/detail/read_quantized.hpp>
#include <ferry/distributed/sharded/detail/sharded_read.hpp>
#include <ferry/distributed/sharded/detail/with_routes.hpp>
#include <ferry/distributed/sharded/make_plan.hpp>
#include <ferry/distributed/sharded/sharded_table.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/rows/gather.hpp>

#include <type_traits>

namespace ferry {

namespace detail {

template <class... Policies, class Exec, class Table, class Indices, class Out>
ticket gather_sharded(const Exec& exec, const Table& table, const Indices& indices, Out& out) {
  using asked = chosen_policies<Policies...>;
  using chosen = local_policies<asked>;
  using kind = sharded_kind<Table>;
  if constexpr (reads_shards<typename asked::template get<path_category, path::automatic>>) {
    return checked_peer_gather<asked>(exec, table, indices, out);
  } else {
    require_sharded_verb<Exec, Table, Indices, Out, chosen, false>();
    const auto sink = make_ref(out);
    using sink_type = std::remove_const_t<decltype(sink)>;
    kind::template require_output<sink_type>();
    const auto& named = sharded_rows_named_by(indices);
    using choice = read_choice<asked, typename kind::wired, typename kind::template reader<chosen, Exec>>;
    read_together<sharded_gather<choice, Exec, const Table, std::remove_cvref_t<decltype(named)>, sink_type>>
        verb("gather", exec, table, named, sink,
             add_plan(note_of<>("gather", table), indices, fetches_once<asked>));
    return verb.call.run(verb);
  }
}

}  // namespace detail

/// out[p] = row indices[p] of a sharded table, for each position p of this rank's batch. Arguments and
/// policies are those of gather from an ordinary table; indices may also be a sharded_plan, or a row_plan
/// for tables of as many rows. With path::exchange each different row comes once from its owner; with a
/// sharded_plan all ranks must name that path, or none. The table is a sharded_table or a
/// sharded_quantized_table, whose codes travel and are decoded here, as gather from a quantized_tensor does.
///
/// path::automatic reads the rows as path::peer does if all ranks can, see path::peer below, and then
/// waits for all of them.
///
/// Collective, see sharded_table; a rank without indices passes empty arrays. Blocks until the rows are in
/// `out`. ticket::wait() throws out_of_range for bad indices of this rank; other ranks do not learn of them.
/// Throws invalid_argument for shapes that do not fit, and peer_error if that happened to another rank.
///
/// path::peer is not collective and does not block: kernels of `exec` read the shards of all ranks. A rank
/// reads what the collective calls that it has taken part in have written. Indices may be a row_plan, and no
/// sharded_plan. Throws invalid_argument if this process does not reach all shards (the table was made
/// inside of communicator::run, or other processes have not shared theirs), if the device does not reach a
/// shard, and for more than 64 ranks.
template <class Exec, detail::ShardedRows Table, class Indices, class Out, class... Policies>
  requires(
      detail::Fits<detail::gather_arguments, const Exec&, const Table&, const Indices&, Out, Policies...>)
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket gather(
    const Exec& exec, const Table& table, const Indices& indices, Out&& out, Policies...) {
  detail::require_output<Out>();
  return detail::gather_sharded<Policies...>(exec, table, indices, out);
}

}  // namespace ferry
