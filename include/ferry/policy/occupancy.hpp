// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/policy.hpp>

#include <cstdint>
#include <string_view>

/// Limits of the blocks that a verb's kernels take on a device, for other work beside them. Verbs of a host
/// take the threads of their execution space.
namespace ferry::occupancy {

/// The default: as many blocks as the device holds at once.
struct full {
  /// Facts about the policy, see ferry::OccupancyPolicy.
  /// @{
  using policy_category = occupancy_category;
  static constexpr std::string_view name = "occupancy::full";
  static constexpr std::int64_t most_blocks(std::int64_t multiprocessors) { return 4 * multiprocessors; }
  /// @}
};
static_assert(OccupancyPolicy<full>);

/// At most `Count` blocks of 512 threads.
template <int Count>
struct blocks {
  static_assert(Count > 0, "ferry: occupancy::blocks<n> takes one block or more.");
  /// Facts about the policy, see ferry::OccupancyPolicy.
  /// @{
  using policy_category = occupancy_category;
  static constexpr std::string_view name = "occupancy::blocks";
  static constexpr std::int64_t most_blocks(std::int64_t) { return Count; }
  /// @}
};
static_assert(OccupancyPolicy<blocks<8>>);

/// At most one block of 512 threads on each of `Percent` percent of the multiprocessors.
template <int Percent>
struct background {
  static_assert(Percent > 0 && Percent <= 100,
                "ferry: occupancy::background<percent> takes 1 to 100 percent.");
  /// Facts about the policy, see ferry::OccupancyPolicy.
  /// @{
  using policy_category = occupancy_category;
  static constexpr std::string_view name = "occupancy::background";
  static constexpr std::int64_t most_blocks(std::int64_t multiprocessors) {
    const std::int64_t share = multiprocessors * Percent / 100;
    return share < 1 ? 1 : share;
  }
  /// @}
};
static_assert(OccupancyPolicy<background<50>>);

}  // namespace ferry::occupancy
