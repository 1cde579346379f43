// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/policy.hpp>

#include <string_view>

/// Which step number the update of a row uses, for rules that depend on it (bias corrections, decaying
/// rates), and what happens to the steps that did not name the row.
namespace ferry::step_count {

/// The default: one count for all rows, the number of calls of step. Rows that a step does not name keep
/// weights and state.
struct global {
  /// Facts about the policy, see ferry::StepCountPolicy.
  /// @{
  using policy_category = step_count_category;
  static constexpr std::string_view name = "step_count::global";
  static constexpr bool counts_rows = false, catches_up = false;
  /// @}
};
static_assert(StepCountPolicy<global>);

/// Each row counts the steps of its own, in 4 bytes per row. Otherwise as global.
struct per_row {
  /// Facts about the policy, see ferry::StepCountPolicy.
  /// @{
  using policy_category = step_count_category;
  static constexpr std::string_view name = "step_count::per_row";
  static constexpr bool counts_rows = true, catches_up = false;
  /// @}
};
static_assert(StepCountPolicy<per_row>);

/// The steps that a row missed are applied first, with a gradient of zero and the options of those steps.
/// Moments and weights decay as in dense training; the results are equal up to rounding. Each row stores the
/// last step applied to it, in 4 bytes.
struct catch_up {
  /// Facts about the policy, see ferry::StepCountPolicy.
  /// @{
  using policy_category = step_count_category;
  static constexpr std::string_view name = "step_count::catch_up";
  static constexpr bool counts_rows = true, catches_up = true;
  /// @}
};
static_assert(StepCountPolicy<catch_up>);

}  // namespace ferry::step_count
