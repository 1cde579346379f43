// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace ferry_bench {

/// Repeated readings of one quantity, in milliseconds.
class timing {
 public:
  void add(double ms) { ms_.push_back(ms); }
  [[nodiscard]] std::size_t count() const { return ms_.size(); }
  [[nodiscard]] double median() const {
    if (ms_.empty()) return 0.0;
    std::vector<double> sorted(ms_);
    std::sort(sorted.begin(), sorted.end());
    const std::size_t middle = sorted.size() / 2;
    return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
  }
  [[nodiscard]] double least() const { return ms_.empty() ? 0.0 : *std::min_element(ms_.begin(), ms_.end()); }
  [[nodiscard]] double most() const { return ms_.empty() ? 0.0 : *std::max_element(ms_.begin(), ms_.end()); }
  [[nodiscard]] const std::vector<double>& all() const { return ms_; }

 private:
  std::vector<double> ms_;
};

/// One work, timed in two ways.
struct measured {
  timing device;  ///< between two events on the device, per call; calls may be enqueued in bursts
  timing wall;    ///< one call and its wait(), by the host's clock
};

}  // namespace ferry_bench
