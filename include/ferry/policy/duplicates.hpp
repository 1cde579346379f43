// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/policy.hpp>

#include <string_view>

/// Policies for several positions of a batch that name the same row. "First" and "last" refer to positions,
/// so the result is the same on every backend and for every number of threads; only sum_any_order differs.
namespace ferry::duplicates {

/// The values are summed in the order of their positions, in the accumulation type.
struct sum {
  /// Facts about the policy, see ferry::DuplicatesPolicy.
  /// @{
  using policy_category = duplicates_category;
  static constexpr std::string_view name = "duplicates::sum";
  static constexpr bool combines = true, needs_plan = true, forbids = false;
  /// @}
};
static_assert(DuplicatesPolicy<sum>);

/// The values are summed in any order, so the last bits of floating-point sums differ from run to run. One
/// value, or the sum of several, is converted to the table's element type and added to the row where it lies,
/// rounded to nearest: narrow formats lose more than under `sum`. Integers give the bits of `sum`.
///
/// A device adds atomically to a table in device_space and makes no plan. On a host each row belongs to one
/// thread, which adds in the order of the batch. Where sorting is no slower it means `sum`: with a plan, on
/// path::ordered, and for a device and a table in host memory. For scatter_add, and for step with rules that
/// are linear in the gradient, see ferry::LinearOptimizer.
struct sum_any_order {
  /// Facts about the policy, see ferry::DuplicatesPolicy.
  /// @{
  using policy_category = duplicates_category;
  static constexpr std::string_view name = "duplicates::sum_any_order";
  static constexpr bool combines = true, needs_plan = false, forbids = false, any_order = true;
  /// @}
};
static_assert(DuplicatesPolicy<sum_any_order>);

/// The sum divided by the number of positions; integers round towards zero.
struct mean {
  /// Facts about the policy, see ferry::DuplicatesPolicy.
  /// @{
  using policy_category = duplicates_category;
  static constexpr std::string_view name = "duplicates::mean";
  static constexpr bool combines = true, needs_plan = true, forbids = false;
  /// @}
};
static_assert(DuplicatesPolicy<mean>);

/// The value at the last position is used.
struct last {
  /// Facts about the policy, see ferry::DuplicatesPolicy.
  /// @{
  using policy_category = duplicates_category;
  static constexpr std::string_view name = "duplicates::last";
  static constexpr bool combines = false, needs_plan = true, forbids = false;
  /// @}
};
static_assert(DuplicatesPolicy<last>);

/// The value at the first position is used.
struct first {
  /// Facts about the policy, see ferry::DuplicatesPolicy.
  /// @{
  using policy_category = duplicates_category;
  static constexpr std::string_view name = "duplicates::first";
  static constexpr bool combines = false, needs_plan = true, forbids = false;
  /// @}
};
static_assert(DuplicatesPolicy<first>);

/// The caller promises that no row occurs twice, so nothing is sorted. Where one is, scatter
/// keeps one of the values, and a verb that updates rows may mix several.
struct assume_unique {
  /// Facts about the policy, see ferry::DuplicatesPolicy.
  /// @{
  using policy_category = duplicates_category;
  static constexpr std::string_view name = "duplicates::assume_unique";
  static constexpr bool combines = false, needs_plan = false, forbids = false;
  /// @}
};
static_assert(DuplicatesPolicy<assume_unique>);

/// A row that occurs twice is an error: ticket::wait() throws ferry::invalid_argument, and the table is
/// unchanged.
struct reject {
  /// Facts about the policy, see ferry::DuplicatesPolicy.
  /// @{
  using policy_category = duplicates_category;
  static constexpr std::string_view name = "duplicates::reject";
  static constexpr bool combines = false, needs_plan = true, forbids = true;
  /// @}
};
static_assert(DuplicatesPolicy<reject>);

}  // namespace ferry::duplicates

namespace ferry::detail {

/// True if the values of a row may be added one by one, in any order.
template <class Duplicates>
inline constexpr bool in_any_order = requires {
  requires Duplicates::any_order;
};

}  // namespace ferry::detail
