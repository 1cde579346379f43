#pragma once

#include <ferry/error.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/optim/chain.hpp>
#include <ferry/runtime/detail/backend.hpp>

#include <string>
#include <type_traits>

/// Where the arrays lie that stages read, and who reaches them.
namespace ferry::detail {

/// Where the array that a stage reads lies; pageable memory for a stage that reads none.
template <class Stage>
struct space_of_stage {
  using type = pageable_space;
  static constexpr bool reads_pageable = false;
};
template <class Stage>
  requires requires { typename Stage::memory_space; }
struct space_of_stage<Stage> {
  using type = typename Stage::memory_space;
  static constexpr bool reads_pageable = std::is_same_v<type, pageable_space>;
};
template <class Rule>
struct stage_spaces {
  static constexpr bool on_host = true;
  static constexpr bool any_pageable = false;
  template <class Exec>
  static constexpr bool reached_by = true;
};
template <class Rule, class... Stages>
struct stage_spaces<optim::staged<Rule, Stages...>> {
  /// Whether the host's threads may take the steps.
  static constexpr bool on_host =
      ((space_of_stage<Stages>::type::is_host_accessible || device_is_host<Stages>)&&...);
  /// Whether a device may have no access to what they read.
  static constexpr bool any_pageable = (space_of_stage<Stages>::reads_pageable || ...);
  template <class Exec>
  static constexpr bool reached_by = (may_dereference<Exec, typename space_of_stage<Stages>::type>() && ...);
};

/// Options and extents of a stage.
template <class Stage, class Table>
void require_stage(const Stage& stage, const Table& table) {
  stage.check();
  stage.reach([&](const auto& array) {
    static_assert(std::is_same_v<typename std::remove_cvref_t<decltype(array)>::memory_space,
                                 typename space_of_stage<Stage>::type>,
                  "ferry: a stage that reads an array needs the name of its memory_space.");
    if (array.rows() != table.rows() || array.width() != 1)
      throw invalid_argument("ferry::step: " + std::string(Stage::name) + " was given " + array.describe() +
                             ", but needs one number for each row of " + table.describe());
  });
}

}  // namespace ferry::detail
