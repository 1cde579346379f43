#pragma once

#include <array>
#include <cmath>
#include <cstdint>

namespace ferry::optim {

/// By what Adam and its kin correct the averages of the first steps: 1 - b1^step and 1 - b2^step, as a rule's by_step(), see
/// ScheduledOptimizer. Terms<Compute>::of makes of the two what the rule's updates take.
template <template <class> class Terms>
struct bias_corrections {
  std::array<double, 2> betas;

  friend bool operator==(const bias_corrections&, const bias_corrections&) = default;

  /// `step` counts from 1. The powers are taken in double on the host.
  template <class Compute>
  [[nodiscard]] Terms<Compute> at(std::int64_t step) const {
    const auto t = static_cast<double>(step);
    return Terms<Compute>::of(1.0 - std::pow(betas[0], t), 1.0 - std::pow(betas[1], t));
  }
};

}  // namespace ferry::optim
