// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/policy.hpp>

#include <string_view>

/// Policies of copy_rows for tables that share memory, as when blocks move within one pool.
namespace ferry::overlap {

/// The default: tables that share memory are refused.
struct reject {
  /// Facts about the policy, see ferry::OverlapPolicy.
  /// @{
  using policy_category = overlap_category;
  static constexpr std::string_view name = "overlap::reject";
  static constexpr bool buffers = false;
  /// @}
};
static_assert(OverlapPolicy<reject>);

/// All rows are read into scratch memory of the execution space before the first is written; into page-locked
/// memory if host threads move them.
struct buffer {
  /// Facts about the policy, see ferry::OverlapPolicy.
  /// @{
  using policy_category = overlap_category;
  static constexpr std::string_view name = "overlap::buffer";
  static constexpr bool buffers = true;
  /// @}
};
static_assert(OverlapPolicy<buffer>);

}  // namespace ferry::overlap
