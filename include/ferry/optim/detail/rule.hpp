// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/optimizer.hpp>
#include <ferry/optim/detail/decay.hpp>
#include <ferry/optim/detail/number.hpp>
#include <ferry/optim/detail/require_option.hpp>
#include <ferry/optim/field.hpp>

#include <Kokkos_Core.hpp>

#include <boost/hana/tuple.hpp>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>

/// The parts of the library's rules, whose headers include this one.
namespace ferry::optim {

/// An update with these coefficients in the order of its members: numbers are narrowed to Compute.
template <template <class> class Update, class Compute, class... Coefficients>
Update<Compute> make_update(const Coefficients&... coefficients) {
  const auto member = [](const auto& coefficient) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(coefficient)>, bool>)
      return coefficient;
    else
      return static_cast<Compute>(coefficient);
  };
  return {member(coefficients)...};
}

/// The options() of a rule whose updates depend on lr and the terms of a step, see ScheduledOptimizer: the
/// update without those coefficients, which its member set_step(lr, terms) sets.
template <class Update, class Wide>
struct scheduled_update {
  Update update;
  Wide lr;

  template <class Terms>
  KOKKOS_FUNCTION Update at(const Terms& terms) const {
    Update result = update;
    result.set_step(lr, terms);
    return result;
  }
};

/// The terms of Adam's family: the bias corrections 1 - b1^step and 1 - b2^step, or the root of the second.
template <class First, class Second, bool Rooted = false>
struct correction_terms {
  First correction1;
  Second correction2;

  friend bool operator==(const correction_terms&, const correction_terms&) = default;
  static correction_terms make(double first, double second) {
    return {static_cast<First>(first), static_cast<Second>(Rooted ? std::sqrt(second) : second)};
  }
};

/// The by_step() of Adam's family. Terms<Compute>::make takes both corrections.
template <template <class> class Terms>
struct bias_corrections {
  std::array<double, 2> betas;

  friend bool operator==(const bias_corrections&, const bias_corrections&) = default;

  /// `step` counts from 1. The host computes the powers in double.
  template <class Compute>
  [[nodiscard]] Terms<Compute> at(std::int64_t step) const {
    const auto t = static_cast<double>(step);
    return Terms<Compute>::make(1.0 - std::pow(betas[0], t), 1.0 - std::pow(betas[1], t));
  }
};

}  // namespace ferry::optim
