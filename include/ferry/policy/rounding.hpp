// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/policy.hpp>

#include <string_view>

/// How new weights become half_t, bhalf_t or 8-bit codes.
namespace ferry::rounding {

/// The default: to the nearest, ties to even.
struct nearest {
  /// Facts about the policy, see ferry::RoundingPolicy.
  /// @{
  using policy_category = rounding_category;
  static constexpr std::string_view name = "rounding::nearest";
  static constexpr bool is_random = false;
  /// @}
};
static_assert(RoundingPolicy<nearest>);

/// To one of the two neighbours, with probabilities whose expected value is the exact one. Changes too small
/// for the format are therefore kept on average. Above the largest number of the format it rounds to nearest,
/// so a finite weight becomes infinite only if nearest makes it so. Random bits are a function of the state's
/// seed, the step, the row and the column: the same on every backend and for every number of threads.
struct stochastic {
  /// Facts about the policy, see ferry::RoundingPolicy.
  /// @{
  using policy_category = rounding_category;
  static constexpr std::string_view name = "rounding::stochastic";
  static constexpr bool is_random = true;
  /// @}
};
static_assert(RoundingPolicy<stochastic>);

}  // namespace ferry::rounding
