// SPDX-License-Identifier: Apache-2.0
#include <ferry/profile/detail/fit_reach.hpp>

#include <algorithm>
#include <cstddef>

namespace ferry::detail {

void fit_reach(const std::vector<double>& gib, const std::vector<double>& extra, machine_profile& profile) {
  if (gib.empty()) return;
  if (*std::max_element(extra.begin(), extra.end()) < 0.5 * profile.link_row_ns) {
    profile.pinned_reach_gib = std::max(machine_profile().pinned_reach_gib, gib.back());
    return;
  }
  double least = -1.0;
  for (double reach = gib.front() / 4.0; reach < gib.back(); reach *= 1.02) {
    double xx = 0.0, xy = 0.0, yy = 0.0;
    for (std::size_t i = 0; i < gib.size(); ++i) {
      const double x = std::max(0.0, 1.0 - reach / gib[i]);
      xx += x * x;
      xy += x * extra[i];
      yy += extra[i] * extra[i];
    }
    const double error = yy - xy * xy / xx;
    if (least >= 0.0 && error >= least) continue;
    least = error;
    profile.pinned_reach_gib = reach;
    profile.pinned_miss_ns = xy / xx;
  }
}

}  // namespace ferry::detail
