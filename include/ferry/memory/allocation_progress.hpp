// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/thread_observer.hpp>

#include <cstddef>
#include <functional>
#include <string_view>
#include <utility>

namespace ferry {

/// The progress of an allocation. The strings are valid during the callback only.
struct FERRY_SHARED progress {
  std::string_view space;      ///< name of the memory space
  std::string_view label;      ///< as in memory_by_label
  std::size_t bytes_done = 0;  ///< bytes that are ready
  std::size_t bytes = 0;       ///< size of the allocation

  /// True if this is the last report of the allocation. Only the last one has bytes_done == bytes.
  [[nodiscard]] bool done() const noexcept { return bytes_done == bytes; }
};

/// Observes the allocations of this thread during its lifetime.
///
///   ferry::allocation_progress watch([](const ferry::progress& p) { bar(p.label, p.bytes_done, p.bytes); });
///
/// The callback runs in this thread only. It is called after at least 1 % of the bytes or 100 ms, and once
/// when the allocation is done. Allocations without work per page (device memory, pageable memory, all spaces
/// of a host backend) are reported once, at the end. An exception of the callback ends the allocation and
/// frees its memory. Observers nest: the innermost is called first. A callback's own allocations are not
/// reported to it.
class allocation_progress : public detail::thread_observer<progress> {
 public:
  /// Observes until it is destroyed, which must happen in the same thread.
  explicit allocation_progress(std::function<void(const progress&)> callback)
      : thread_observer(std::move(callback)) {}
};

namespace detail {

using progress_meter = report_meter<progress>;

}  // namespace detail
}  // namespace ferry
