// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/profile/machine_profile.hpp>

#include <vector>

namespace ferry::detail {

/// Fits pinned_reach_gib and pinned_miss_ns by least squares; the reach is found by search.
///
///   gib    sizes of tables, ascending
///   extra  additional ns of a random row, compared with a small table
///
/// If the largest table is as fast as the smallest, its size becomes the least reach, and the miss is
/// unchanged.
void fit_reach(const std::vector<double>& gib, const std::vector<double>& extra, machine_profile& profile);

}  // namespace ferry::detail
