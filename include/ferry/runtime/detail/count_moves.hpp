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

/// The counters of the process, for all pairs of spaces and all paths. Spaces and paths of the user share
/// the last place. Verbs add to them with relaxed order: a count is exact once the call has returned.
struct transfer_counters {
  static constexpr std::string_view spaces[] = {"device_space", "pinned_space", "mapped_space",
                                                "pageable_space", "other"};
  static constexpr std::string_view paths[] = {"direct", "ordered", "staged", "cooperative", "other"};
  static constexpr std::size_t places = 5;

  transfer_counter counters[places][places][places];  ///< by source, destination, path

  /// The place of a name in one of the lists.
  static constexpr std::size_t place_of(const std::string_view (&list)[places], std::string_view name) {
    std::size_t place = 0;
    while (place + 1 < places && list[place] != name) ++place;
    return place;
  }

  template <class From, class To, class Path>
  [[nodiscard]] transfer_counter& counter_of() noexcept {
    constexpr std::size_t source = place_of(spaces, From::name);
    constexpr std::size_t target = place_of(spaces, To::name);
    constexpr std::size_t path = place_of(paths, Path::name);
    return counters[source][target][path];
  }

  static transfer_counters& get();
};

struct nothing_over_link {};

/// Counts the bytes of rows that a call moves from one array to another, for transfer_statistics. Keep the
/// result until the work is enqueued: it reports kernels that move rows over the link as one transfer.
/// Without `by_kernel` copy engines move them, and transfer() reports that.
template <class Path, class Exec, class From, class FromSpace, class To, class ToSpace>
[[nodiscard]] auto count_transfer([[maybe_unused]] launch_context<Exec>& call,
                                  const array_ref<From, FromSpace>& source,
                                  const array_ref<To, ToSpace>& target, std::int64_t bytes,
                                  [[maybe_unused]] bool by_kernel = true) {
  constexpr bool over_link = !is_host_exec<Exec> && Path::reaches_table && !Path::occupies_host_threads &&
                             (FromSpace::is_host_accessible || ToSpace::is_host_accessible);
  transfer_counters::get().counter_of<FromSpace, ToSpace, Path>().add(bytes, over_link && by_kernel);
  if constexpr (over_link)
    return transfer_region(ToSpace::name, target.data, FromSpace::name, source.data,
                           static_cast<std::size_t>(bytes), call.label(Path::name), by_kernel);
  else
    return nothing_over_link{};
}

/// Bytes that kernels moved, of those that count_transfer() counted, when they share the rows with host
/// threads.
template <class Path, class From, class FromSpace, class To, class ToSpace>
void moved_by_kernels(const array_ref<From, FromSpace>&, const array_ref<To, ToSpace>&, std::int64_t bytes) {
  transfer_counters::get().counter_of<FromSpace, ToSpace, Path>().add_zero_copy(bytes);
}

}  // namespace ferry::detail
