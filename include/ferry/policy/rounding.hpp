#pragma once

#include <ferry/concepts/policy.hpp>

#include <string_view>

/// How new weights become half_t, bhalf_t or 8-bit codes.
namespace ferry::rounding {

/// To the nearest, ties to even.
struct nearest {
  using policy_category = rounding_category;
  static constexpr std::string_view name = "rounding::nearest";
  static constexpr bool is_random = false;
};
static_assert(RoundingPolicy<nearest>);

/// To one of the two neighbours, with probabilities that make the expected value the exact one, so that changes too small
/// for the format are not lost on average. Random bits are a function of the state's seed, the step, row and column:
/// the same on every backend and for every number of threads.
struct stochastic {
  using policy_category = rounding_category;
  static constexpr std::string_view name = "rounding::stochastic";
  static constexpr bool is_random = true;
};
static_assert(RoundingPolicy<stochastic>);

}  // namespace ferry::rounding
