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

}  // namespace ferry
