// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/policy.hpp>

#include <string_view>

/// Which step number the update of a row uses, for rules that depend on it (bias corrections, decaying
/// rates), and what happens to the steps that did not name the row.
namespace ferry::step_count {

namespace detail {
/// The facts of most of these policies; each states its name and those that differ.
struct facts {
  using policy_category = step_count_category;
  static constexpr bool counts_rows = false, catches_up = false;
};
}  // namespace detail

/// The default: one count for all rows, the number of calls of step. Rows that a step does not name keep
/// weights and state.
struct global : detail::facts {
  static constexpr std::string_view name = "step_count::global";  ///< see ferry::StepCountPolicy
};
static_assert(StepCountPolicy<global>);

/// Each row counts the steps of its own, in 4 bytes per row. Otherwise as global.
struct per_row : detail::facts {
  static constexpr std::string_view name = "step_count::per_row";  ///< see ferry::StepCountPolicy
  static constexpr bool counts_rows = true;                        ///< see ferry::StepCountPolicy
};
static_assert(StepCountPolicy<per_row>);

/// The steps that a row missed are applied first, with a gradient of zero and the options of those steps.
/// Moments and weights decay as in dense training; the results are equal up to rounding. Each row stores the
/// last step applied to it, in 4 bytes.
struct catch_up : detail::facts {
  static constexpr std::string_view name = "step_count::catch_up";  ///< see ferry::StepCountPolicy
  static constexpr bool counts_rows = true;                         ///< see ferry::StepCountPolicy
  static constexpr bool catches_up = true;                          ///< see ferry::StepCountPolicy
};
static_assert(StepCountPolicy<catch_up>);

}  // namespace ferry::step_count
