// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/profile/detail/cost_model.hpp>
#include <ferry/profile/machine_profile.hpp>
#include <ferry/profile/path_kind.hpp>

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace ferry {

/// Why path::automatic takes a path; see ferry::explain.
struct explanation {
  /// A path that can serve the call.
  struct candidate {
    path_kind path = path_kind::direct;  ///< the path
    double seconds = 0;                  ///< predicted, from the call to the end of its wait()
    double gb_per_s = 0;                 ///< bytes of the batch per predicted time, in 1e9 bytes per second
    bool picked = false;                 ///< whether path::automatic takes it
    std::string reason;                  ///< one sentence: what limits it
  };

  std::string call;                      ///< the call in words
  std::string profile;                   ///< where the numbers come from, see ferry::profile_origin
  path_kind picked = path_kind::direct;  ///< the path that path::automatic takes
  std::vector<candidate> candidates;     ///< the picked path first, then by predicted time

  /// A table with one line per candidate; a star marks the picked one.
  [[nodiscard]] std::string to_string() const;
};

namespace detail {

std::string in_words(double value, int digits, const char* unit);

/// What limits a prediction, with its numbers.
std::string limit_in_words(const machine_profile& profile, const move_facts& facts, path_kind by,
                           const prediction& made);

explanation explain_choice(const machine_profile& profile, const move_facts& facts, path_set candidates);

}  // namespace detail

}  // namespace ferry
