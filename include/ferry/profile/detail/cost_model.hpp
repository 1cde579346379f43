// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/profile/detail/candidate_paths.hpp>
#include <ferry/profile/machine_profile.hpp>

/// The predicted time of a call on a machine with a known profile: a pure function of sizes and memory
/// spaces.
///
/// Rows are assumed to be random and uniformly distributed. Several limits of a row's rate overlap, so the
/// slowest one counts. The start time of a path is added. The constants here were equal on all measured
/// machines; the profile has the numbers that differ between machines.
namespace ferry::detail {

/// What limits a prediction.
enum class bottleneck : unsigned char {
  start,          ///< the call itself: launches, threads, sorting
  device_memory,  ///< rows within the device
  link_rows,      ///< requests over the link, for short rows
  link_bytes,     ///< bytes over the link
  translation,    ///< pages that the device must look up
  host            ///< the threads of the host
};

struct prediction {
  double seconds = 0;
  double start_seconds = 0;  ///< the time that does not depend on the number of rows, and the sort
  bottleneck limit = bottleneck::start;
};

/// The predicted time of a call on a path.
prediction predict(const machine_profile& profile, const move_facts& facts, path_kind by);

/// The candidate with the shortest predicted time; direct for an empty set. A path that occupies the calling
/// thread must be predicted to be faster by more than the error of the model.
path_kind choose_route(const machine_profile& profile, const move_facts& facts, path_set candidates);

}  // namespace ferry::detail
