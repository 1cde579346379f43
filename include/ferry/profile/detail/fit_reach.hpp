// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/profile/machine_profile.hpp>

#include <vector>

namespace ferry::detail {

/// Fits the reach of registered memory, and the cost of random rows above it. The reach is found by search.
/// The cost is a factor on the defaults, by least squares: measuring the largest tables of a machine would
/// take too long.
///
///   gib    sizes of tables, ascending
///   extra  additional ns of a row of 128 bytes, compared with a small table
///
/// Where the largest table is as fast as the smallest, its size becomes the least reach, and the cost is
/// unchanged.
void fit_reach(const std::vector<double>& gib, const std::vector<double>& extra, machine_profile& into);

}  // namespace ferry::detail
