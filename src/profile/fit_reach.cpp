// SPDX-License-Identifier: Apache-2.0
#include <ferry/profile/detail/fit_reach.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace ferry::detail {

void fit_reach(const std::vector<double>& gib, const std::vector<double>& extra, machine_profile& into) {
  if (gib.empty()) return;
  const machine_profile usual;
  if (*std::max_element(extra.begin(), extra.end()) < 0.5 * into.link_row_ns) {
    into.pinned_reach_gib = std::max(usual.pinned_reach_gib, gib.back());
    return;
  }
  double least = -1.0;
  for (double reach = gib.front() / 4.0; reach < gib.back(); reach *= 1.02) {
    double xx = 0.0, xy = 0.0, yy = 0.0;
    for (std::size_t i = 0; i < gib.size(); ++i) {
      const double x = gib[i] <= reach ? 0.0
                                       : usual.pinned_miss_ns * (1.0 - reach / gib[i]) +
                                             usual.pinned_walk_ns * std::log2(gib[i] / reach);
      xx += x * x;
      xy += x * extra[i];
      yy += extra[i] * extra[i];
    }
    if (xx <= 0.0) continue;
    const double error = yy - xy * xy / xx;
    if (least >= 0.0 && error >= least) continue;
    least = error;
    into.pinned_reach_gib = reach;
    into.pinned_miss_ns = usual.pinned_miss_ns * xy / xx;
    into.pinned_walk_ns = usual.pinned_walk_ns * xy / xx;
  }
}

}  // namespace ferry::detail
