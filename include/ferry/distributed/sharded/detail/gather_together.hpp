// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/sharded/detail/gather_peers.hpp>
#include <ferry/distributed/sharded/detail/kernel_route.hpp>
#include <ferry/distributed/sharded/detail/reach_shards.hpp>
#include <ferry/distributed/sharded/detail/shard_instance.hpp>
#include <ferry/distributed/sharded/detail/with_routes.hpp>
#include <ferry/distributed/sharded/sharded_table.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/ticket.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

/// The collective gather by the kernels of path::peer.
namespace ferry::detail {

/// Whether kernels of Exec find and read the rows of a table, and write rows to OutSpace.
template <class Exec, class Table, class OutSpace>
inline constexpr bool reads_peers = routes_by_kernels<Exec> &&
                                    (is_host_exec<Exec> ||
                                     (!std::is_same_v<typename Table::memory_space, pageable_space> &&
                                      !std::is_same_v<OutSpace, pageable_space>)) &&
                                    requires {
  requires Table::sharding_type::in_kernels;
};

/// Whether kernels of the instance reach the shards of all ranks; see reach_shards, which then succeeds.
template <class Exec, class Table>
bool reaches_shards([[maybe_unused]] const Exec& exec, const Table& table) {
  const int ranks = table.comm().size();
  if (ranks > kernels::most_shards) return false;
  const auto reaches = [&](int r) {
    if (!table.holds(r)) return false;
    if constexpr (!is_host_exec<Exec>) {
      const int device = make_ref(table.shard(r)).device();
      const int here = execution_backend<Exec>::device_of(exec);
      return device < 0 || device == here || execution_backend<Exec>::reaches_device(exec, device);
    }
    return true;
  };
  for (int r = 0; r < ranks; ++r)
    if (!reaches(r) && (!Table::sharding_type::replicates || table.holds(r))) return false;
  return !Table::sharding_type::replicates || table.holds(table.comm().acting_rank());
}

/// Gathers, where the kernels of all ranks read the shards of all ranks: then true, and `read` has the bad
/// indices of this rank. One phase where one of them can't; two where all can: no rank leaves before all have
/// read, as the rows are those of one point in time. Ranks may differ in Exec, spaces and paths, so in a
/// group of threads all of them meet.
template <class Asked, class Bounds, class Exec, class Table, class Named, class Out, class OutSpace>
bool gathers_from_peers(collective& call, const Exec& exec, const Table& table, const Named& named,
                        const array_ref<Out, OutSpace>& out, [[maybe_unused]] ticket& read) {
  constexpr bool tries = reads_peers<Exec, Table, OutSpace> &&
                         Asked::template get<path_category, path::automatic>::chosen_at_run_time;
  constexpr bool alike = Table::sharding_type::replicates;  // no rank needs another one
  // Where there are host backends alone, no rank can.
  if constexpr (device_is_host<Exec> && !routes_by_kernels<Exec>) return false;
  if (call.is_whole() || !call.passes_device_memory()) return false;
  bool can = false;
  if constexpr (tries) can = kernels_read(exec, named) && reaches_shards(exec, table);
  if (can && !alike) {
    // Kernels of the caller may have written this rank's shard: its own instances order those alone.
    static const std::string label = "ferry::distributed::written";
    execution_backend<Exec>::fence(exec, label);
    execution_backend<Exec>::fence(shard_instance(table.comm(), call.rank(), exec), label);
  }
  if constexpr (!alike) {
    const std::int32_t mine = can ? 1 : 0;
    const auto all = call.all_gather(std::span<const std::int32_t>(&mine, 1));
    can = std::find(all.begin(), all.end(), 0) == all.end();
    if (can) call.begin_reads();
  }
  if constexpr (tries)
    if (can) {
      static const std::string label = "ferry::distributed::gathered";
      read = gather_from_peers<Bounds>(exec, table, named, out, prefers_once(table, named));
      execution_backend<Exec>::fence(exec, label);
      call.agree();
      call.close();
      return true;
    }
  return false;
}

}  // namespace ferry::detail
