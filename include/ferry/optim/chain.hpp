// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/argument.hpp>
#include <ferry/concepts/optimizer.hpp>
#include <ferry/concepts/transform.hpp>

#include <tuple>
#include <utility>

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

}  // namespace ferry::optim::detail

namespace ferry::optim {

/// A rule with transforms. Verbs and make_state take it where they take a rule.
///
///   optim::chain clipped{optim::adam{.lr = 1e-3}, optim::clip_norm{1.0}, optim::frozen_rows{mask}};
///   auto state = optim::make_state(clipped, table);      // the state of adam
///   step(exec, clipped, table, state, indices, grads).wait();
///   clipped.rule.lr = 5e-4;
///
/// The transforms are applied in their order to a row's gradient, then comes the rule, then the transforms
/// are applied in their order to each new weight. A limit of the weights' norm is always applied last. At
/// most one transform may clip the norm of the gradient, and at most one may limit the norm of the weights.
template <class Rule, class... Transforms>
struct chain {
  static_assert((detail::require_update<Rule>(), ferry::detail::DescribesRule<Rule>),
                "ferry: the first argument of optim::chain is an optimizer rule, ferry::optim::adam say.");
  static_assert(
      (Transform<Transforms> && ...),
      "ferry: the arguments of optim::chain after the rule are transforms with all members of ferry::Transform, whose device_part is a ferry::optim::transform_defaults with some members hidden.");

  Rule rule;                             ///< its options may be changed between steps
  std::tuple<Transforms...> transforms;  ///< in the order of their application

  /// Copies the rule and the transforms. Options are checked by the verbs, not here.
  explicit chain(Rule optimizer_rule, Transforms... kernel_transforms)
      : rule(std::move(optimizer_rule)), transforms(std::move(kernel_transforms)...) {}
};

namespace detail {

template <class T>
struct transforms_of {
  using rule = T;
  static const T& rule_in(const T& optimizer) { return optimizer; }
  static std::tuple<> transforms_in(const T&) { return {}; }
};
template <class Rule, class... Transforms>
struct transforms_of<chain<Rule, Transforms...>> {
  using rule = Rule;
  static const Rule& rule_in(const chain<Rule, Transforms...>& optimizer) { return optimizer.rule; }
  static const std::tuple<Transforms...>& transforms_in(const chain<Rule, Transforms...>& optimizer) {
    return optimizer.transforms;
  }
};

/// The rule of an optimizer with or without transforms.
template <class T>
using rule_of = typename transforms_of<T>::rule;

}  // namespace detail
}  // namespace ferry::optim

template <class Rule, class... Transforms>
inline constexpr bool ferry::detail::is_optimizer_argument<ferry::optim::chain<Rule, Transforms...>> = true;
