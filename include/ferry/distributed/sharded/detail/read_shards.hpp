// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/communicator.hpp>
#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/sharded/detail/shard_instance.hpp>
#include <ferry/distributed/sharded/detail/shard_places.hpp>
#include <ferry/distributed/sharded/detail/sharded_verb.hpp>
#include <ferry/distributed/sharded/sharded_table.hpp>
#include <ferry/error.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/rows/detail/move_rows.hpp>
#include <ferry/rows/detail/row_access.hpp>
#include <ferry/rows/gather.hpp>
#include <ferry/runtime/detail/array_checks.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/runtime/ticket.hpp>
#include <ferry/tensor/array_traits.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>

namespace ferry::detail {

/// The shards of a table, as kernels of one instance reach them.
template <class T, class Spread>
struct reached_shards {
  using value_type = T;

  std::array<const T*, kernels::most_shards> data{};  ///< null for a shard without rows
  std::array<std::int64_t, kernels::most_shards> rows_of{};
  const T* lowest = nullptr;
  Spread spread{};
  std::int64_t rows = 0;
  std::int64_t width = 0;
  int ranks = 0;
  int only = -1;  ///< the shard that has all rows

  /// True if all rows consist of whole units of this size, each aligned to it.
  [[nodiscard]] bool in_units_of(std::size_t bytes) const {
    if (static_cast<std::size_t>(width) * sizeof(T) % bytes != 0) return false;
    for (const T* shard : data)
      if (reinterpret_cast<std::uintptr_t>(shard) % bytes != 0) return false;
    return true;
  }
  /// The source with places in units of this size.
  template <class Source>
  [[nodiscard]] auto source_in(std::size_t bytes, const Source& source) const {
    const auto units = static_cast<std::int64_t>(static_cast<std::size_t>(width) * sizeof(T) / bytes);
    kernels::rows_of_shards<Source, Spread> placed{source, {spread, rows, ranks, only, units, {}}};
    const auto first = reinterpret_cast<std::uintptr_t>(lowest);
    for (std::size_t r = 0; r < data.size(); ++r)
      if (data[r] != nullptr)
        placed.places.begin[r] =
            static_cast<std::int64_t>((reinterpret_cast<std::uintptr_t>(data[r]) - first) / bytes);
    return placed;
  }
};

/// Why the instances of a device do not read the shard of another process' rank; empty if they do.
[[nodiscard]] std::string why_unopened(const opened_shards& opened, const communicator& comm, int rank,
                                       int device);

/// Orders the call after the writes to all shards in flight. Throws invalid_argument for a shard that this
/// object neither holds nor has opened, or that the instance does not reach.
template <class Exec, class T, class Space, class Spread>
reached_shards<T, kernel_sharding<Spread>> reach_shards(launch_context<Exec>& call,
                                                        const sharded_table<T, Space, Spread>& table) {
  const int ranks = table.comm().size();
  const auto refuse = [&](const std::string& why) {
    throw invalid_argument(joined("ferry::gather: path::peer reads the shards of all ranks of ",
                                  table.describe(), ", but ", why));
  };
  if (ranks > kernels::most_shards) refuse(joined("a kernel takes at most ", kernels::most_shards));
  reached_shards<T, kernel_sharding<Spread>> shards;
  shards.spread = sharding_for_kernels(call.exec(), table);
  shards.rows = static_cast<std::int64_t>(table.rows());
  shards.width = static_cast<std::int64_t>(table.width());
  shards.ranks = ranks;
  if constexpr (Spread::replicates) {  // one on the device of the instance, if there is one
    for (int r = 0; r < ranks; ++r)
      if (table.holds(r) && (shards.only < 0 || table.comm().device(r).id == call.device())) shards.only = r;
  }
  const auto take = [&](int r, const T* data) {
    shards.data[static_cast<std::size_t>(r)] = data;
    shards.rows_of[static_cast<std::size_t>(r)] = table.rows_of(r);
    if (shards.lowest == nullptr || data < shards.lowest) shards.lowest = data;
  };
  const opened_shards& opened = table.opened();
  for (int r = 0; r < ranks; ++r) {
    if (shards.only >= 0 && r != shards.only) continue;
    if (!table.holds(r)) {
      if (const std::string why = why_unopened(opened, table.comm(), r, call.device()); !why.empty())
        refuse(why);
      if (const std::byte* const data = opened.data[static_cast<std::size_t>(r)].get())
        take(r, reinterpret_cast<const T*>(data));
      continue;
    }
    const auto shard = make_ref(table.shard(r));
    require_direct_reach("gather", call.exec(), shard);
    if constexpr (!is_host_exec<Exec>)
      if (shard.device() >= 0 && shard.device() != call.device() &&
          !execution_backend<Exec>::reaches_device(call.exec(), shard.device()))
        refuse(joined("device ", call.device(), " does not reach the memory of device ", shard.device()));
    call.reads_from(shard, true);
    if (shard.size() != 0) take(r, shard.data);
  }
  if (opened.reads != nullptr) {  // of all other processes' shards
    auto whole = read_only(whole_ref(table));
    whole.accesses = opened.reads;
    call.reads_from(whole, true);
  }
  return shards;
}

}  // namespace ferry::detail

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

/// path::peer: kernels that read the shards of all ranks.
namespace ferry::detail {

/// The shards as launch_gather reads them.
/// @{
template <class T, class Spread>
bool in_units_of(std::size_t bytes, const reached_shards<T, Spread>& shards) {
  return shards.in_units_of(bytes);
}
template <class T, class Spread, class Source>
auto read_in_units(std::size_t bytes, const reached_shards<T, Spread>& shards, const Source& source) {
  const auto placed = shards.source_in(bytes, source);
  return rows_for_reading<T, std::remove_const_t<decltype(placed)>>{shards.lowest, 1, placed};
}
/// @}

/// Rows of a sharded table, which kernels read from the shards of all ranks. A kind of sharded table
/// specialises it.
template <class Table>
class peer_rows;

template <class T, class Space, class Spread>
class peer_rows<sharded_table<T, Space, Spread>> : public rows_of_kernels<T, Space> {
 public:
  explicit peer_rows(const sharded_table<T, Space, Spread>& shards)
      : shards_(shards), whole_(whole_ref(shards)) {}

  [[nodiscard]] const array_ref<T, Space>& table() const { return whole_; }
  [[nodiscard]] std::int64_t row_bytes() const { return bytes_of_rows(whole_, 1); }

  template <class Exec>
  reached_shards<T, kernel_sharding<Spread>> rows(launch_context<Exec>& call) const {
    return reach_shards(call, shards_);
  }
  template <class Exec, class Source>
  static const Source& places(launch_context<Exec>&, const Source& source, std::int64_t,
                              const std::shared_ptr<plan_storage>&) {
    return source;
  }

 private:
  const sharded_table<T, Space, Spread>& shards_;
  array_ref<T, Space> whole_;
};
template <class T, class Space, class Spread>
peer_rows(const sharded_table<T, Space, Spread>&) -> peer_rows<sharded_table<T, Space, Spread>>;

/// Such rows, if each different row of a plan is to cross once.
template <class Table>
class peer_rows_once : public peer_rows<Table> {
 public:
  template <class OutSpace>
  static constexpr bool gathers_once = true;
  using peer_rows<Table>::peer_rows;
};

/// The verb. `named` comes from rows_named_by; the arguments have been checked.
template <class Bounds, class Exec, class Table, class Named, class Out, class OutSpace>
ticket gather_from_peers(const Exec& exec, const Table& table, const Named& named,
                         const array_ref<Out, OutSpace>& out, bool shares_rows = true) {
  if (out.size() != 0) require_array_device("gather", exec, out);
  if constexpr (is_plan<Named>)
    if (shares_rows)
      return run_gather<path::peer, chosen_policies<Bounds>>(exec, peer_rows_once<Table>(table), named, out);
  return run_gather<path::peer, chosen_policies<Bounds>>(exec, peer_rows<Table>(table), named, out);
}

/// Checks the arguments of a gather by path::peer and gathers.
template <class Chosen, class Exec, class Table, class Indices, class Out>
ticket checked_peer_gather(const Exec& exec, const Table& table, const Indices& indices, Out& out) {
  using bounds_policy = typename Chosen::template get<bounds_category, bounds::check>;
  using checked = chosen_policies<path::direct, bounds_policy>;
  require_policies<Chosen, true, false>();
  static_assert(!is_sharded_plan<Indices>,
                "ferry: path::peer takes indices or a row_plan; a sharded_plan has routes for exchanges.");
  static_assert(
      requires { requires Table::sharding_type::in_kernels; },
      "ferry: path::peer finds the owners of rows in kernels; make owner and local_row of the sharding KOKKOS_FUNCTIONs and declare in_kernels = true.");
  require_sharded_verb<Exec, Table, Indices, Out, checked, false>();
  const auto sink = make_ref(out);
  sharded_kind<Table>::template require_output<std::remove_const_t<decltype(sink)>>();
  const auto& named = rows_named_by(indices);
  using given =
      std::conditional_t<Chosen::template names<bounds_category>, checked, chosen_policies<path::direct>>;
  require_batch<Exec, given>("gather", whole_ref(table), named, sink);
  return gather_from_peers<bounds_policy>(exec, table, named, sink);
}

}  // namespace ferry::detail
