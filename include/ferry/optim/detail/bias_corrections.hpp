// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Macros.hpp>

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

/// The terms of updates that divide by both corrections, in the type of the kernels.
template <class Compute>
struct both_corrections {
  Compute correction1, correction2;

  friend bool operator==(const both_corrections&, const both_corrections&) = default;
  static both_corrections of(double correction1, double correction2) {
    return {static_cast<Compute>(correction1), static_cast<Compute>(correction2)};
  }
};

/// The options of a rule whose updates divide by both corrections: an update that lacks only these.
template <class Update, class Compute>
struct corrected_options {
  Update fixed;

  KOKKOS_FUNCTION Update at(const both_corrections<Compute>& by) const {
    Update made = fixed;
    made.correction1 = by.correction1;
    made.correction2 = by.correction2;
    return made;
  }

  /// Of a rule with the options of LAMB.
  template <class Rule>
  static corrected_options of(const Rule& rule) {
    const auto one = static_cast<Compute>(1.0);
    return {{static_cast<Compute>(rule.lr), static_cast<Compute>(rule.betas[0]),
             static_cast<Compute>(rule.betas[1]), static_cast<Compute>(1.0 - rule.betas[0]),
             static_cast<Compute>(1.0 - rule.betas[1]), one, one, static_cast<Compute>(rule.eps),
             static_cast<Compute>(rule.weight_decay), static_cast<Compute>(rule.maximize ? -1.0 : 1.0)}};
  }
};

}  // namespace ferry::optim
