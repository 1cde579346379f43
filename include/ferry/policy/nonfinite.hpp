// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/policy.hpp>

#include <string_view>

/// Policies for gradients with an infinite or NaN element, which scaled losses can produce.
namespace ferry::nonfinite {

namespace detail {
/// The facts of most of these policies; each states its name and those that differ.
struct facts {
  using policy_category = nonfinite_category;
  static constexpr bool looks = false, reports = false;
};
}  // namespace detail

/// The default: nothing is checked, and the weight of such a gradient becomes infinite or NaN. Rules that use
/// signs alone keep it finite: rprop ignores a NaN, after which lion never moves that weight again but for
/// decay. An infinite gradient counts by its sign, and lion then moves the weight that way in each step.
struct keep : detail::facts {
  static constexpr std::string_view name = "nonfinite::keep";  ///< see ferry::NonfinitePolicy
};
static_assert(NonfinitePolicy<keep>);

/// The whole step is left out: weights and state are unchanged. wait() takes the step out of state.steps()
/// and adds it to state.skipped().
struct skip : detail::facts {
  static constexpr std::string_view name = "nonfinite::skip";  ///< see ferry::NonfinitePolicy
  static constexpr bool looks = true;                          ///< see ferry::NonfinitePolicy
};
static_assert(NonfinitePolicy<skip>);

/// The whole step is left out, and wait() throws invalid_argument with the gradients' label and the first
/// such position, column and value.
struct reject : detail::facts {
  static constexpr std::string_view name = "nonfinite::reject";  ///< see ferry::NonfinitePolicy
  static constexpr bool looks = true;                            ///< see ferry::NonfinitePolicy
  static constexpr bool reports = true;                          ///< see ferry::NonfinitePolicy
};
static_assert(NonfinitePolicy<reject>);

}  // namespace ferry::nonfinite
