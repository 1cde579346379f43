// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/memory_space.hpp>
#include <ferry/memory/detail/backend.hpp>
#include <ferry/memory/device.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ferry {

/// The memory that ferry holds in one space: tensors, scratch memory, reports, and for pinned_space also
/// adopted memory, whose pages ferry locks. Adopted pageable memory is not counted. Sizes are the requested
/// bytes; the system rounds host memory up to pages.
struct space_statistics {
  std::size_t current = 0;      ///< bytes of all live allocations, idle ones in pools included
  std::size_t peak = 0;         ///< largest `current` since the start or reset_peak
  std::size_t count = 0;        ///< live allocations
  std::size_t total_count = 0;  ///< allocations made so far
  std::size_t reserved = 0;     ///< the part of `current` that is idle in pools
  std::size_t budget = 0;       ///< bytes, see set_memory_budget; 0 for none
};

/// Statistics of all allocations that share a label.
struct label_statistics {
  std::string label;        ///< "ferry::tensor::<the tensor's>", "ferry::scratch::<the space's>", ...
  std::size_t current = 0;  ///< bytes
  std::size_t peak = 0;     ///< bytes
  std::size_t count = 0;    ///< live allocations
};

namespace detail {

[[nodiscard]] space_statistics statistics_of(std::string_view account);
[[nodiscard]] std::vector<label_statistics> labels_of(std::string_view account);
void reset_peak_of(std::string_view account);
std::size_t trim_space(std::string_view space);
void set_budget_of(std::string_view account, std::size_t bytes);

}  // namespace detail

/// The statistics of one memory space, from the first allocation until Kokkos::finalize. Thread-safe.
/// `reserved` is read after the other members, so it may differ from them while other threads allocate.
///
///   location  for device_space the device; default the one that Kokkos uses. The other spaces are host
///             memory, which all devices share
template <MemorySpace Space>
[[nodiscard]] space_statistics memory_statistics(device location = {}) {
  return detail::statistics_of(detail::account_of<Space>(location.id));
}

/// The statistics of one memory space by label, sorted by label. A label without live allocations is kept for
/// its peak until reset_peak, or until there are more than a few hundred such labels. `location` is as that
/// of memory_statistics. Thread-safe.
template <MemorySpace Space>
[[nodiscard]] std::vector<label_statistics> memory_by_label(device location = {}) {
  return detail::labels_of(detail::account_of<Space>(location.id));
}

/// Resets the peaks of one memory space to the current sizes. `location` is as that of memory_statistics.
/// Thread-safe.
template <MemorySpace Space>
void reset_peak(device location = {}) {
  detail::reset_peak_of(detail::account_of<Space>(location.id));
}

/// Limits the bytes that ferry holds in one memory space (space_statistics::current); 0, the default, means
/// no limit. An allocation that would exceed the budget first returns idle blocks of the space's pools to the
/// system. Where only blocks in use by work in flight are left, it waits for that work. Then it throws
/// budget_exceeded and changes nothing else. A budget below the current size forbids further allocations and
/// frees nothing (see trim). The limit holds for all threads together, until Kokkos::finalize. `location` is
/// as that of memory_statistics; other devices keep their budgets.
template <MemorySpace Space>
void set_memory_budget(std::size_t bytes, device location = {}) {
  detail::set_budget_of(detail::account_of<Space>(location.id), bytes);
}

/// The memory that ferry holds in all spaces, see memory_report.
struct memory_holdings {
  /// One memory space.
  struct space {
    std::string name;  ///< of the memory space, for a device other than Kokkos' with " of device <number>"
    space_statistics all;                  ///< as memory_statistics
    std::vector<label_statistics> labels;  ///< as memory_by_label, the largest first
  };
  std::vector<space> spaces;  ///< that ferry has held memory of, by name

  /// The holdings as a table for people: a line for each space and each label, with the bytes now, the peak
  /// and the number of live allocations.
  [[nodiscard]] std::string text() const;
};

/// Reports the memory that ferry holds in each space and for each label, from the first allocation until
/// Kokkos::finalize; also spaces of the user. Thread-safe; the numbers of one space belong together, but
/// other threads may allocate while the next space is read.
///
///   std::puts(ferry::memory_report().text().c_str());
[[nodiscard]] memory_holdings memory_report();

/// Returns idle blocks of the pools of one space, on all devices, to the system: scratch memory, and memory
/// of tensors that have ended. The result is their size in
/// bytes. Never waits: blocks in use by work in flight are kept.
template <MemorySpace Space>
std::size_t trim() {
  return detail::trim_space(Space::name);
}

/// As above, for all memory spaces.
std::size_t trim();

}  // namespace ferry
