// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/sharded/detail/gather_peers.hpp>
#include <ferry/distributed/sharded/detail/kernel_route.hpp>
#include <ferry/distributed/sharded/detail/reach_shards.hpp>
#include <ferry/distributed/sharded/detail/sharded_read.hpp>
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

/// True if kernels of Exec find and read the rows of a table, and write rows to OutSpace.
template <class Exec, class Table, class OutSpace>
inline constexpr bool reads_peers = routes_by_kernels<Exec> &&
                                    (is_host_exec<Exec> ||
                                     (!sharded_kind<Table>::template lies_in<pageable_space> &&
                                      !std::is_same_v<OutSpace, pageable_space>)) &&
                                    requires {
  requires Table::sharding_type::in_kernels;
};

/// True if kernels of the instance reach the shards of all ranks; see reach_shards, which then succeeds.
template <class Exec, class Table>
bool reaches_shards([[maybe_unused]] const Exec& exec, const Table& table) {
  const int ranks = table.comm().size();
  if (ranks > kernels::most_shards) return false;
  const auto reaches = [&](int r) {
    if (!table.holds(r)) return false;
    bool in_reach = true;
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

/// The collective gather. If the kernels of all ranks read the shards of all ranks they do: no rank leaves
/// before all have read, as the rows are those of one point in time. Ranks may differ in Exec, spaces and
/// paths, so in a group of threads all of them say whether they can.
template <class Choice, class Exec, class Table, class Named, class Out>
struct sharded_gather : sharded_read<Choice, Exec, Table, Named, Out> {
  using base = sharded_read<Choice, Exec, Table, Named, Out>;
  using base::base;
  using base::call, base::exec, base::named, base::out, base::table;
  /// True if this thread may have other ranks to ask. If there are host backends alone, no rank can.
  static constexpr bool asks = !base::is_planned && (!device_is_host<Exec> || routes_by_kernels<Exec>);
  static constexpr bool tries =
      asks && reads_peers<Exec, Table, typename Out::memory_space> &&
      Choice::asked::template get<path_category, path::automatic>::chosen_at_run_time;
  static constexpr bool needs_others = !Table::sharding_type::replicates;

  bool by_peers = false;

  void route() {
    if constexpr (asks)
      if (!call.is_whole() && call.passes_device_memory()) agree_on_peers();
    if (!by_peers) base::route();
  }
  void agree() {
    if (!by_peers) base::agree();
  }
  void move() {
    if constexpr (tries)
      if (by_peers) {
        static const std::string label = "ferry::distributed::gathered";
        this->result = gather_from_peers<typename Choice::bounds_policy>(exec, table, named, out,
                                                                         prefers_once(table, named));
        execution_backend<Exec>::fence(exec, label);
        call.agree();
        call.close();
        return;
      }
    base::move();
  }
  void apply() {
    if (!by_peers) base::apply();
  }

 private:
  void agree_on_peers() {
    if constexpr (tries) by_peers = kernels_read(exec, named) && reaches_shards(exec, table);
    if constexpr (needs_others) {
      if (by_peers) {
        // Kernels of the caller may have written this rank's shard: its own instances order those alone.
        static const std::string label = "ferry::distributed::written";
        execution_backend<Exec>::fence(exec, label);
        execution_backend<Exec>::fence(this->instance(call.rank()), label);
      }
      const std::int32_t vote = by_peers ? 1 : 0;
      const auto votes = call.all_gather(std::span<const std::int32_t>(&vote, 1));
      by_peers = std::find(votes.begin(), votes.end(), 0) == votes.end();
      if (by_peers) call.begin_reads();
    }
  }
};

}  // namespace ferry::detail
