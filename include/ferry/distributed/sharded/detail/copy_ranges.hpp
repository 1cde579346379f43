// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/communicator.hpp>
#include <ferry/distributed/communicator/detail/call_note.hpp>
#include <ferry/distributed/sharded/detail/fetch_rows.hpp>
#include <ferry/distributed/sharded/detail/read_shards.hpp>
#include <ferry/distributed/sharded/detail/row_series.hpp>
#include <ferry/distributed/sharded/detail/shard_instance.hpp>
#include <ferry/distributed/sharded/detail/verb_on_shards.hpp>
#include <ferry/distributed/sharded/sharded_table.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/rows/copy.hpp>
#include <ferry/rows/detail/global_rows.hpp>
#include <ferry/rows/detail/move_rows.hpp>
#include <ferry/rows/detail/row_access.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/count_moves.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/runtime/ticket.hpp>
#include <ferry/tensor/array_traits.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <Kokkos_Macros.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

/// Copies of whole shards: in ranges of rows, or by one kernel that computes the number of each row. Neither
/// makes a list of rows.
namespace ferry::kernels {

/// Item i is row numbers(i) of a table, which goes to row i of a shard.
struct numbered_rows {
  global_rows numbers;

  KOKKOS_FUNCTION std::int64_t row(std::int64_t item, bool) const { return numbers(item); }
  KOKKOS_FUNCTION static std::int64_t position(std::int64_t k) { return k; }
};

/// Item i is row begin + i of a table.
struct rows_from {
  std::int64_t begin;

  KOKKOS_FUNCTION std::int64_t row(std::int64_t item, bool) const { return begin + item; }
  KOKKOS_FUNCTION static std::int64_t position(std::int64_t k) { return k; }
};

/// Item i is row i of a shard, which goes to row numbers(i) of a table.
struct numbered_places {
  static constexpr bool spreads_positions = true;

  global_rows numbers;

  KOKKOS_FUNCTION static std::int64_t row(std::int64_t item, bool) { return item; }
  KOKKOS_FUNCTION std::int64_t position(std::int64_t k) const { return numbers(k); }
};

}  // namespace ferry::kernels

namespace ferry::detail {

/// How a thread copies rows of a sharded table.
enum class copy_way {
  lists,    ///< gathers by lists of rows
  ranges,   ///< a copy for each two arrays: their common rows are a fixed number of rows apart
  kernel,   ///< a kernel for each array that is written, which reads the shards of all ranks
  kernels,  ///< a kernel for each shard that is read, which writes an array of all rows
  buffer    ///< whole rows in their order pass through a buffer on a device, which a kernel fills
};

/// Bytes of such a buffer. Its transfer takes milliseconds, and the kernel a tenth of that (H200).
inline constexpr std::int64_t copy_buffer_bytes = std::int64_t{1} << 26;
template <class T>
std::int64_t rows_of_buffer(std::int64_t rows, std::int64_t width) {
  const std::int64_t row_bytes = std::max<std::int64_t>(1, width * static_cast<std::int64_t>(sizeof(T)));
  return std::clamp<std::int64_t>(copy_buffer_bytes / row_bytes, 1, std::max<std::int64_t>(1, rows));
}

/// True if rows between the device of Exec and an array in Space pass through host threads, which write whole
/// ranges four times as fast as single rows.
template <class Exec, class Space>
inline constexpr bool passes_host_threads = !is_host_exec<Exec> && std::is_same_v<Space, pageable_space>;

template <class Space>
inline constexpr bool is_of_devices = std::is_same_v<Space, device_space>;

/// True if kernels of Exec reach both sides.
template <class Exec, class FromSpace, class ToSpace>
inline constexpr bool copies_by_kernel = is_host_exec<Exec> || (!std::is_same_v<FromSpace, pageable_space> &&
                                                                !std::is_same_v<ToSpace, pageable_space>);

/// True if kernels of Exec find the rows of a table, and reach both sides.
template <class Exec, class Table, class ToSpace>
inline constexpr bool finds_rows_to_copy =
    copies_by_kernel<Exec, typename Table::memory_space, ToSpace>&& requires {
  requires Table::sharding_type::in_kernels;
};

/// True if the instance copies between its own memory and that of `device`, -1 for host memory. `peers`: also
/// if its kernels reach the memory of another device.
template <class Exec>
bool copies_memory_of([[maybe_unused]] const Exec& exec, [[maybe_unused]] int device,
                      [[maybe_unused]] bool peers) {
  if constexpr (is_host_exec<Exec>)
    return true;
  else
    return device < 0 || device == execution_backend<Exec>::device_of(exec) ||
           (peers && execution_backend<Exec>::reaches_device(exec, device));
}

/// Waits for all work of the caller's instance, so that work of another one comes after it.
template <class Exec>
void begin_on(const Exec& instance, const Exec& exec) {
  static const std::string label = "ferry::copy::begin";
  if constexpr (!is_host_exec<Exec>)
    if (!(instance == exec)) execution_backend<Exec>::fence(exec, label);
}

/// An addresser of an array that may lie on another device than the instance, which reaches it.
template <class T, class Space>
class reached_rows {
 public:
  explicit reached_rows(const array_ref<T, Space>& array) : array_(array) {}

  [[nodiscard]] const array_ref<T, Space>& table() const { return array_; }
  [[nodiscard]] std::int64_t row_bytes() const { return bytes_of_rows(array_, 1); }
  template <class Exec>
  const array_ref<T, Space>& rows(launch_context<Exec>& call) const {
    require_direct_reach(call.verb(), call.exec(), array_);
    call.reads_from(array_, true);
    return array_;
  }

 private:
  const array_ref<T, Space>& array_;
};

/// Copies `items` rows of an addresser, see row_access.hpp, by one kernel: into the rows of `out` that
/// `source` names.
template <class Path, class Exec, class Access, class Out, class OutSpace, class Source>
ticket copy_numbered(const Exec& exec, const Access& access, const array_ref<Out, OutSpace>& out,
                     const Source& source, std::int64_t items) {
  launch_context<Exec> call(exec, "copy");
  if (items == 0 || out.width() == 0) return call.finish();
  require_direct_reach("copy", exec, out);
  call.writes_to(out);
  [[maybe_unused]] const auto traffic =
      count_transfer<Path>(call, access.table(), out, items * access.row_bytes());
  decltype(auto) rows = access.rows(call);
  launch_gather(exec, call.label(Path::name), rows, out, source, items);
  return call.finish();
}

/// The shard of a rank, as the other ranks of its process read it.
struct shard_offer {
  const void* data = nullptr;
  std::int64_t is_ready = 0;  ///< 1 if the rank copies without lists, else 0
};

/// A verb that copies out of the shards of all ranks, without lists if every rank can.
template <class Exec, class Table>
struct reads_whole_shards : verb_on_shards<Table> {
  using base = verb_on_shards<Table>;
  using base::call, base::table;
  using value = typename Table::value_type;
  using space = typename Table::memory_space;
  static constexpr bool replicates = Table::sharding_type::replicates;

  const Exec& exec;
  std::vector<row_series> series{};  ///< one per shard; empty if a shard is none
  std::vector<shard_offer> offers{};
  bool has_lists = true;  ///< the ranks copy by lists

  reads_whole_shards(Table& shards, const Exec& instance, const call_note& note)
      : base(shards, note), exec(instance) {}

  /// The way to an array or shard in ToSpace that `home` writes. `in_series`: the rows written are a series.
  template <class ToSpace>
  [[nodiscard]] copy_way way_to(const Exec& home, bool in_series = true) const {
    if constexpr (finds_rows_to_copy<Exec, Table, ToSpace>) {
      // A host copies ranges faster, and would compute the owners of hashed rows more than once.
      const bool is_best = !is_host_exec<Exec> || (!series.empty() && !in_series);
      if (is_best && reaches_shards(home, table)) return copy_way::kernel;
    }
    if (series.empty() || !in_series) return copy_way::lists;
    return reaches_sources<ToSpace>(home) ? copy_way::ranges : copy_way::lists;
  }
  /// True if the instances for ToSpace reach each shard that is read.
  template <class ToSpace>
  [[nodiscard]] bool reaches_sources(const Exec& home) const {
    constexpr bool peers = copies_by_kernel<Exec, space, ToSpace>;
    for (int r = 0; r < call.ranks(); ++r) {
      if (replicates && r != only_source()) continue;
      if (!copies_memory_of(instance_for<ToSpace>(r, home), device_of_shard(r), peers)) return false;
      if (!table.holds(r) && is_unknown(r)) return false;
    }
    return true;
  }
  /// The instance for the shard of a rank: the one of its device if the target is host memory, else `home`.
  template <class ToSpace>
  [[nodiscard]] Exec instance_for(int rank, const Exec& home) const {
    return is_of_devices<ToSpace> || !is_of_devices<space> ? home : shard_instance(table.comm(), rank, home);
  }

  /// A phase: the ranks tell each other whether they are ready to copy without lists. Then they read each
  /// other's shards up to the next phase.
  void offer_shards(bool is_ready) {
    has_lists = !is_ready;
    if (call.is_whole()) return;
    if (!call.shares_addresses()) {
      has_lists = true;
      return;
    }
    const auto shard = make_ref(table.shard(call.rank()));
    if (is_ready) end_writes(shard);
    const shard_offer offer{shard.data, is_ready ? 1 : 0};
    call.begin_reads();
    offers = call.all_gather(std::span<const shard_offer>(&offer, 1));
    has_lists = std::any_of(offers.begin(), offers.end(),
                            [](const auto& rank_offer) { return rank_offer.is_ready == 0; });
    if (has_lists) call.cancel_reads();
  }

  /// visit(rank) for the ranks whose shards are read. Each rank begins with the one after it, so that no two
  /// read from one device.
  template <class Visit>
  void for_each_source(const Visit& visit) const {
    if constexpr (replicates) return visit(only_source());
    const int ranks = call.ranks(), begin = call.is_whole() ? 0 : call.rank() + 1;
    for (int i = 0; i < ranks; ++i) visit((begin + i) % ranks);
  }
  /// The shard of a rank, which may belong to another object of this process.
  [[nodiscard]] array_ref<const value, space> source_of(int rank) const {
    if (table.holds(rank)) return read_only(make_ref(table.shard(rank)));
    array_ref<const value, space> shard = read_only(whole_ref(table));
    shard.extents[0] = table.rows_of(rank);
    shard.data = static_cast<const value*>(offers[static_cast<std::size_t>(rank)].data);
    return shard;
  }

 private:
  /// The shard with all rows that this thread reads.
  [[nodiscard]] int only_source() const { return call.first(); }
  [[nodiscard]] int device_of_shard(int rank) const {
    if (!is_of_devices<space>) return -1;
    return table.holds(rank) ? make_ref(table.shard(rank)).device() : table.comm().device(rank).id;
  }
  /// True if the device of another object's shard is not known.
  [[nodiscard]] bool is_unknown(int rank) const {
    return !is_host_exec<Exec> && is_of_devices<space> && table.comm().device(rank).id < 0;
  }
  /// Waits for the writes to this rank's shard, also by the caller's kernels: other ranks' instances
  /// are not ordered after them.
  template <class Shard>
  void end_writes([[maybe_unused]] const Shard& shard) const {
    static const std::string label = "ferry::copy::written";
    if constexpr (!is_host_exec<Exec>) {
      execution_backend<Exec>::fence(exec, label);
      execution_backend<Exec>::fence(shard_instance(table.comm(), call.rank(), exec), label);
    }
    if (shard.accesses != nullptr) shard.accesses->wait_for_writes();
  }
};

}  // namespace ferry::detail
