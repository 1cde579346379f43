// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/tools.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ferry::detail {

/// The transfers between two spaces by one path. On a cache line of its own.
struct alignas(64) transfer_counter {
  std::atomic<std::uint64_t> calls{0};
  std::atomic<std::uint64_t> bytes{0};
  std::atomic<std::uint64_t> zero_copy_bytes{0};

  void add(std::int64_t moved, bool zero_copy) noexcept {
    calls.fetch_add(1, std::memory_order_relaxed);
    bytes.fetch_add(static_cast<std::uint64_t>(moved), std::memory_order_relaxed);
    if (zero_copy) add_zero_copy(moved);
  }
  void add_zero_copy(std::int64_t moved) noexcept {
    zero_copy_bytes.fetch_add(static_cast<std::uint64_t>(moved), std::memory_order_relaxed);
  }
};

/// The counters of the process, for all pairs of spaces and all paths. Spaces and paths of the user share the
/// last name of a list. Verbs add to them with relaxed order: a count is exact once the call has returned.
struct transfer_counters {
  static constexpr std::size_t names = 5;
  static constexpr std::string_view spaces[names] = {"device_space", "pinned_space", "mapped_space",
                                                     "pageable_space", "other"};
  static constexpr std::string_view paths[names] = {"direct", "ordered", "staged", "cooperative", "other"};

  transfer_counter counters[names * names * names];  ///< by source, destination, path

  static constexpr std::size_t index_of(const std::string_view (&list)[names], std::string_view name) {
    std::size_t index = 0;
    while (index + 1 < names && list[index] != name) ++index;
    return index;
  }

  template <class From, class To, class Path>
  [[nodiscard]] transfer_counter& counter_of() noexcept {
    constexpr std::size_t pair = index_of(spaces, From::name) * names + index_of(spaces, To::name);
    return counters[pair * names + index_of(paths, Path::name)];
  }

  static transfer_counters& get();
};

/// Counts the bytes of rows that a call moves from one array to another, for transfer_statistics. Keep the
/// result until the work is enqueued: it reports kernels that move rows over the link as one transfer.
/// Without `by_kernel` copy engines move them, and transfer() reports that.
template <class Path, class Exec, class From, class FromSpace, class To, class ToSpace>
[[nodiscard]] transfer_region count_transfer(launch_context<Exec>& call,
                                             const array_ref<From, FromSpace>& source,
                                             const array_ref<To, ToSpace>& target, std::int64_t bytes,
                                             bool by_kernel = true) {
  constexpr bool over_link = !is_host_exec<Exec> && Path::reaches_table && !Path::occupies_host_threads &&
                             (FromSpace::is_host_accessible || ToSpace::is_host_accessible);
  const bool reported = over_link && by_kernel;
  transfer_counters::get().counter_of<FromSpace, ToSpace, Path>().add(bytes, reported);
  return transfer_region(ToSpace::name, target.data, FromSpace::name, source.data,
                         static_cast<std::size_t>(bytes),
                         reported ? std::string_view(call.label(Path::name)) : std::string_view(), reported);
}

/// Bytes that kernels moved, of those that count_transfer() counted, when they share the rows with host
/// threads.
template <class Path, class From, class FromSpace, class To, class ToSpace>
void moved_by_kernels(const array_ref<From, FromSpace>&, const array_ref<To, ToSpace>&, std::int64_t bytes) {
  transfer_counters::get().counter_of<FromSpace, ToSpace, Path>().add_zero_copy(bytes);
}

}  // namespace ferry::detail
