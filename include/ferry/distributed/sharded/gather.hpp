// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/sharded/detail/gather_peers.hpp>
#include <ferry/distributed/sharded/detail/gather_together.hpp>
#include <ferry/distributed/sharded/detail/sharded_read.hpp>
#include <ferry/distributed/sharded/detail/with_routes.hpp>
#include <ferry/distributed/sharded/make_plan.hpp>
#include <ferry/distributed/sharded/sharded_table.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/rows/gather.hpp>

#include <type_traits>

namespace ferry {

/// out[p] = row indices[p] of a sharded table, for each position p of this rank's batch. Arguments and
/// policies are those of gather from an ordinary table; indices may also be a sharded_plan, or a row_plan
/// for tables of as many rows. With path::exchange each different row comes once from its owner; with a
/// sharded_plan all ranks must name that path, or none.
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
template <class Exec, class T, class Space, class Spread, class Indices, class Out, class... Policies>
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket gather(
    const Exec& exec, const sharded_table<T, Space, Spread>& table, const Indices& indices, Out&& out,
    Policies...) {
  using asked = detail::chosen_policies<Policies...>;
  if constexpr (detail::reads_shards<typename asked::template get<path_category, path::automatic>>) {
    detail::require_output<Out>();
    return detail::checked_peer_gather<asked>(exec, table, indices, out);
  } else {
    using table_type = const sharded_table<T, Space, Spread>;
    detail::require_sharded_verb<Exec, sharded_table<T, Space, Spread>, Indices, Out,
                                 detail::local_policies<asked>, false>();
    detail::require_output<Out>();
    const auto sink = make_ref(out);
    detail::require_convertible<typename decltype(sink)::value_type, T>();
    const auto& named = detail::sharded_rows_named_by(indices);
    using reader =
        detail::shard_reader<detail::shard_read_path_t<detail::local_policies<asked>, Exec, Space>>;
    detail::read_together<
        detail::sharded_gather<detail::read_choice<asked, T, reader>, Exec, table_type,
                               std::remove_cvref_t<decltype(named)>, std::remove_const_t<decltype(sink)>>>
        verb("gather", exec, table, named, sink,
             detail::add_plan(detail::note_of<>("gather", table), indices, detail::fetches_once<asked>));
    return verb.call.run(verb);
  }
}

}  // namespace ferry
