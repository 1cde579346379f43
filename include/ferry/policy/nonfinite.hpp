#pragma once

#include <ferry/concepts/policy.hpp>

#include <string_view>

/// What a step does where an element of the gradients is infinite or not a number, as scaled losses give them.
namespace ferry::nonfinite {

/// Nothing: the row that it is for is spoiled.
struct keep {
  using policy_category = nonfinite_category;
  static constexpr std::string_view name = "nonfinite::keep";
  static constexpr bool looks = false;
  static constexpr bool reports = false;
};
static_assert(NonfinitePolicy<keep>);

/// The whole step is left out: weights and state stay as they were, and from wait() on the step is not counted but in
/// state.skipped().
struct skip {
  using policy_category = nonfinite_category;
  static constexpr std::string_view name = "nonfinite::skip";
  static constexpr bool looks = true;
  static constexpr bool reports = false;
};
static_assert(NonfinitePolicy<skip>);

/// It is left out, and wait() throws invalid_argument with the gradients' name and the first such
/// position, column and value.
struct reject {
  using policy_category = nonfinite_category;
  static constexpr std::string_view name = "nonfinite::reject";
  static constexpr bool looks = true;
  static constexpr bool reports = true;
};
static_assert(NonfinitePolicy<reject>);

}  // namespace ferry::nonfinite
