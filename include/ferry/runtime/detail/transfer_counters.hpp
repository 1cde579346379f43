// SPDX-License-Identifier: Apache-2.0
#pragma once

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

}  // namespace ferry::detail
