// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/sharded/detail/gather_peers.hpp>
#include <ferry/distributed/sharded/detail/shard_instance.hpp>
#include <ferry/distributed/sharded/detail/shard_places.hpp>
#include <ferry/distributed/sharded/detail/sharded_verb.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/runtime/detail/backend.hpp>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

/// Collective reads of the shards of all ranks in place, by the kernels of path::peer.
namespace ferry::detail {

/// True if kernels of Exec read the rows of a table in memory that ranks share, and write rows to OutSpace.
template <class Exec, class Table, class OutSpace>
inline constexpr bool reads_peers = (!is_host_exec<Exec> || device_is_host<Exec>)&&(
    is_host_exec<Exec> ||
    (!sharded_kind<Table>::template lies_in<pageable_space> && !std::is_same_v<OutSpace, pageable_space>));

/// True if kernels of the instance reach the shards of all ranks; see reach_shards, which then succeeds.
template <class Exec, class Table>
bool reaches_shards([[maybe_unused]] const Exec& exec, const Table& table) {
  const int ranks = table.comm().size();
  if (ranks > kernels::most_shards) return false;
  const auto reaches = [&](int r) {
    bool in_reach = true;
    if (!table.holds(r)) {
      sharded_kind<Table>::for_each_part(table, [&](const auto& part) {
        in_reach &= part.opened().reads != nullptr &&
                    part.opened().device == execution_backend<Exec>::device_of(exec);
      });
      return in_reach;
    }
    if constexpr (!is_host_exec<Exec>)
      sharded_kind<Table>::for_each_part(table, [&](const auto& part) {
        const int device = make_ref(part.shard(r)).device();
        const int own_device = execution_backend<Exec>::device_of(exec);
        in_reach &=
            device < 0 || device == own_device || execution_backend<Exec>::reaches_device(exec, device);
      });
    return in_reach;
  };
  for (int r = 0; r < ranks; ++r)
    if (!reaches(r) && (!Table::sharding_type::replicates || table.holds(r))) return false;
  return !Table::sharding_type::replicates || table.holds(table.comm().acting_rank());
}

/// True if the ranks are to find out whether kernels of all of them reach the shards: threads, and processes
/// that have opened those of all others. The same on all ranks.
template <class Table>
bool may_reach_shards(const collective& call, const Table& table) {
  if (call.is_whole()) return false;
  if (call.shares_addresses() || Table::sharding_type::replicates) return true;
  bool is_open = true;
  sharded_kind<Table>::for_each_part(table, [&](const auto& part) { is_open &= part.opened().by_all; });
  return is_open;
}

/// True if the kernels of all ranks can read the shards of all, which they may do afterwards, up to agree():
/// a phase, unless this is known. `reaches`: those of this rank can. `shard_exec` works on the shard of the
/// rank.
template <class Exec, class Table>
bool agree_to_read(collective& call, const Exec& exec, const Exec& shard_exec, const Table& table,
                   bool reaches) {
  if (!may_reach_shards(call, table)) return false;
  if (reaches) {
    // Kernels of the caller may have written this rank's shard: its own instances order those alone.
    static const std::string label = "ferry::distributed::written";
    execution_backend<Exec>::fence(exec, label);
    execution_backend<Exec>::fence(shard_exec, label);
  }
  if (Table::sharding_type::replicates) return reaches;
  const std::int32_t vote = reaches ? 1 : 0;
  call.begin_reads();
  const auto votes = call.all_gather(std::span<const std::int32_t>(&vote, 1));
  const bool all_reach = std::find(votes.begin(), votes.end(), 0) == votes.end();
  if (!all_reach) call.cancel_reads();
  return all_reach;
}

/// As above, for a gather of the policies `Asked` into OutSpace. `named` as from sharded_rows_named_by.
template <class Asked, class OutSpace, class Exec, class Table, class Named>
bool agree_to_read_batch(collective& call, const Exec& exec, const Table& table, const Named& named) {
  using path_policy = typename Asked::template get<path_category, path::automatic>;
  bool reaches = false;
  if constexpr (reads_peers<Exec, Table, OutSpace> &&
                (path_policy::chosen_at_run_time || fetches_once<Asked>))
    reaches = may_reach_shards(call, table) && kernels_read_batch(exec, named) && reaches_shards(exec, table);
  return agree_to_read(call, exec, shard_instance(table.comm(), call.first(), exec), table, reaches);
}

}  // namespace ferry::detail
