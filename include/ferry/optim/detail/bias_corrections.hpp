#pragma once

#include <array>
#include <cmath>
#include <cstdint>

namespace ferry::optim {

/// The bias corrections of Adam and related rules, 1 - b1^step and 1 - b2^step, as a rule's by_step(), see
/// ScheduledOptimizer. Terms<Compute>::of turns them into the terms of the rule's updates.
template <template <class> class Terms>
struct bias_corrections {
  std::array<double, 2> betas;

  friend bool operator==(const bias_corrections&, const bias_corrections&) = default;

  /// `step` counts from 1. The host computes the powers in double.
  template <class Compute>
  [[nodiscard]] Terms<Compute> at(std::int64_t step) const {
    const auto t = static_cast<double>(step);
    return Terms<Compute>::of(1.0 - std::pow(betas[0], t), 1.0 - std::pow(betas[1], t));
  }
};

}  // namespace ferry::optim
