// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/profile/detail/path_rule.hpp>
#include <ferry/profile/machine_profile.hpp>
#include <ferry/profile/path_kind.hpp>

#include <string>
#include <vector>

namespace ferry {

/// Why path::automatic takes a path; see ferry::explain.
struct explanation {
  /// A path that can serve the call.
  struct candidate {
    path_kind path = path_kind::direct;  ///< the path
    double seconds = 0;                  ///< its start, and the bytes of the batch over its rate
    double gb_per_s = 0;                 ///< its rate for rows of this table, in 1e9 bytes per second
    bool picked = false;                 ///< true if path::automatic takes it
    std::string reason;                  ///< one sentence: its start, and what limits its rate
  };

  std::string call;      ///< the call in words
  std::string compared;  ///< the numbers that decided, and their comparison; empty for one path
  std::string profile;   ///< where the numbers come from, see ferry::profile_origin
  path_kind picked = path_kind::direct;  ///< the path that path::automatic takes
  std::vector<candidate> candidates;     ///< the picked path first, then by time

  /// A table with one line per candidate; a star marks the picked one.
  [[nodiscard]] std::string to_string() const;
};

namespace detail {

/// A number with its unit.
std::string in_words(double value, int digits, const char* unit);

/// Fills all but `call` and `profile`.
explanation explain_choice(const machine_profile& profile, const move_facts& facts, path_set candidates);

}  // namespace detail

}  // namespace ferry
