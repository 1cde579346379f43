// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/communicator.hpp>
#include <ferry/distributed/sharded/detail/open_shards.hpp>
#include <ferry/distributed/sharded/detail/shard_places.hpp>
#include <ferry/distributed/sharded/sharded_table.hpp>
#include <ferry/error.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/tensor/array_traits.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

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
