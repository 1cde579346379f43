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

/// Collective reads by the kernels of path::peer.
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

/// A phase: true if the kernels of all ranks can read the shards of all, which they may do afterwards, up to
/// agree(). `shard_exec` works on the shard of the rank.
template <class Exec>
bool agree_to_read(collective& call, const Exec& exec, const Exec& shard_exec, bool reaches) {
  if (reaches) {
    // Kernels of the caller may have written this rank's shard: its own instances order those alone.
    static const std::string label = "ferry::distributed::written";
    execution_backend<Exec>::fence(exec, label);
    execution_backend<Exec>::fence(shard_exec, label);
  }
  const std::int32_t vote = reaches ? 1 : 0;
  call.begin_reads();
  const auto votes = call.all_gather(std::span<const std::int32_t>(&vote, 1));
  const bool all_reach = std::find(votes.begin(), votes.end(), 0) == votes.end();
  if (!all_reach) call.cancel_reads();
  return all_reach;
}

/// A collective read of a sharded table. If the kernels of all ranks read the shards of all ranks they do: no
/// rank leaves before all have read, as the rows are those of one point in time. Ranks may differ in Exec,
/// spaces and paths, so all of them say whether they can.
///
/// Read is a sharded_read that has
///   reads_by_kernels  whether kernels can do the verb with its arrays
///   read_peers(list)  the verb by kernels. `list`: the indices of this rank's batch, or a row_plan of them
template <class Read>
struct read_together : Read {
  using Read::call, Read::exec, Read::named, Read::table;
  using Read::Read;
  using execution = typename Read::execution;
  using table_type = typename Read::table_type;
  using asked = typename Read::choice::asked;
  static constexpr bool tries =
      Read::reads_by_kernels && reads_peers<execution, table_type, typename Read::out_space> &&
      (asked::template get<path_category, path::automatic>::chosen_at_run_time || fetches_once<asked>);
  static constexpr bool needs_others = !table_type::sharding_type::replicates;

  bool by_peers = false;

  void route() {
    if (may_reach_shards(call, table)) agree_on_peers();
    if (!by_peers) Read::route();
  }
  void agree() {
    if (!by_peers) Read::agree();
  }
  void move() {
    if constexpr (tries)
      if (by_peers) {
        static const std::string label = "ferry::distributed::gathered";
        if constexpr (Read::is_planned)
          this->result = this->read_peers(named.storage().batch);
        else
          this->result = this->read_peers(named);
        execution_backend<execution>::fence(exec, label);
        call.agree();
        call.close();
        return;
      }
    Read::move();
  }
  void apply() {
    if (!by_peers) Read::apply();
  }

 private:
  void agree_on_peers() {
    if constexpr (tries) by_peers = kernels_read_batch(exec, named) && reaches_shards(exec, table);
    if constexpr (needs_others) by_peers = agree_to_read(call, exec, this->instance(call.rank()), by_peers);
  }
};

/// gather, as read_together takes it.
template <class Choice, class Exec, class Table, class Named, class Out>
struct sharded_gather : sharded_read<Choice, Exec, Table, Named, Out> {
  using base = sharded_read<Choice, Exec, Table, Named, Out>;
  using base::base;
  using base::exec, base::out, base::table;
  using bounds_policy = typename Choice::bounds_policy;
  static constexpr bool reads_by_kernels = true;

  template <class List>
  [[nodiscard]] ticket read_peers(const List& list) {
    if constexpr (fetches_once<typename Choice::asked>)
      return gather_from_peers<bounds_policy>(
          exec, table, plan_of_list<bounds_policy>(exec, list, static_cast<std::int64_t>(table.rows())), out,
          true);
    else
      return gather_from_peers<bounds_policy>(exec, table, list, out, prefers_once(table, list));
  }
};

}  // namespace ferry::detail
