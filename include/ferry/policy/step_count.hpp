#pragma once

#include <ferry/concepts/policy.hpp>

#include <string_view>

/// By which number of steps a row's update goes, where it depends on that number (bias corrections, rates that decay),
/// and what becomes of steps that did not name the row.
namespace ferry::step_count {

/// One count for all rows: how often step was called. Rows that a step does not name keep weights and state, as if there
/// had been no step.
struct global {
  using policy_category = step_count_category;
  static constexpr std::string_view name = "step_count::global";
  static constexpr bool counts_rows = false;
  static constexpr bool catches_up = false;
};
static_assert(StepCountPolicy<global>);

/// Each row counts the steps that named it, in 4 bytes of its own; else as global.
struct per_row {
  using policy_category = step_count_category;
  static constexpr std::string_view name = "step_count::per_row";
  static constexpr bool counts_rows = true;
  static constexpr bool catches_up = false;
};
static_assert(StepCountPolicy<per_row>);

/// A row is first given the steps that it missed, with a gradient of zero and the options that held then: moments and
/// weights decay as in dense training, whose results this has, to rounding. Each row
/// notes in 4 bytes up to which step it is done.
struct catch_up {
  using policy_category = step_count_category;
  static constexpr std::string_view name = "step_count::catch_up";
  static constexpr bool counts_rows = true;
  static constexpr bool catches_up = true;
};
static_assert(StepCountPolicy<catch_up>);

}  // namespace ferry::step_count
