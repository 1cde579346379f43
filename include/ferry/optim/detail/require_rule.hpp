// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/optimizer.hpp>

namespace ferry::optim::detail {

/// Refuses a rule whose update kernels can't call. Other types have been refused.
template <class Rule>
consteval void require_update() {
  if constexpr (ferry::detail::DescribesRule<Rule>) {
    constexpr bool by_rows = ferry::detail::SumsRows<ferry::detail::update_of<Rule, float>>;
    static_assert(
        Optimizer<Rule> || by_rows,
        "ferry: the update of an optimizer rule needs a const member apply(weight, gradient, state) that changes one element, see ferry::Optimizer; one that looks at the row as a whole has a constant `sums`, too.");
    static_assert(
        Optimizer<Rule> || !by_rows,
        "ferry: an update with a constant `sums` looks at the row as a whole, so it needs const members measure, finalize_sums and apply with the parameters of ferry::RowOptimizer, and sums >= 1.");
  }
}

/// True if a type is a rule. Refuses one whose update kernels can't call.
template <class Rule>
consteval bool is_whole_rule() {
  require_update<Rule>();
  return ferry::detail::DescribesRule<Rule>;
}

}  // namespace ferry::optim::detail
