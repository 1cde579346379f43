#pragma once

#include <ferry/concepts/argument.hpp>
#include <ferry/concepts/optimizer.hpp>
#include <ferry/concepts/transform.hpp>

#include <tuple>
#include <utility>

namespace ferry::optim {

/// A rule with stages around it, in the place of a rule:
///
///   optim::staged clipped{optim::adam{.lr = 1e-3}, optim::clip_norm{1.0}, optim::frozen_rows{mask}};
///   auto state = optim::make_state(clipped, table);      // the state of adam
///   step(exec, clipped, table, state, indices, grads).wait();
///   clipped.rule.lr = 5e-4;
///
/// A row's gradient goes through the stages in their order, then the rule is applied, then each new weight goes through
/// them in their order; a limit of the weights' norm comes last, wherever it stands. At most one stage may clip the norm
/// of the gradient, and one limit that of the weights.
template <Optimizer Rule, Stage... Stages>
struct staged {
  Rule rule;
  std::tuple<Stages...> stages;

  explicit staged(Rule of, Stages... around) : rule(std::move(of)), stages(std::move(around)...) {}
};

namespace detail {

template <class T>
struct stages_of {
  using rule = T;
  static const T& rule_in(const T& from) { return from; }
  static std::tuple<> stages_in(const T&) { return {}; }
};
template <class Rule, class... Stages>
struct stages_of<staged<Rule, Stages...>> {
  using rule = Rule;
  static const Rule& rule_in(const staged<Rule, Stages...>& from) { return from.rule; }
  static const std::tuple<Stages...>& stages_in(const staged<Rule, Stages...>& from) { return from.stages; }
};

/// The rule of an optimizer with or without stages.
template <class T>
using rule_of = typename stages_of<T>::rule;

}  // namespace detail
}  // namespace ferry::optim

template <class Rule, class... Stages>
inline constexpr bool ferry::detail::is_optimizer_argument<ferry::optim::staged<Rule, Stages...>> = true;
