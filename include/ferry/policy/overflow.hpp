// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/policy.hpp>

#include <string_view>

/// Policies of resolve for a batch of more different rows than a group has slots.
namespace ferry::overflow {

/// The default: such a group is an error, and stays as it is.
struct reject {
  /// Facts about the policy, see ferry::OverflowPolicy.
  /// @{
  using policy_category = overflow_category;
  static constexpr std::string_view name = "overflow::reject";
  static constexpr bool spills = false;
  /// @}
};
static_assert(OverflowPolicy<reject>);

/// The rows of the first positions get slots, the others -2.
struct spill {
  /// Facts about the policy, see ferry::OverflowPolicy.
  /// @{
  using policy_category = overflow_category;
  static constexpr std::string_view name = "overflow::spill";
  static constexpr bool spills = true;
  /// @}
};
static_assert(OverflowPolicy<spill>);

}  // namespace ferry::overflow
