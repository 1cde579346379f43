// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/optim/chain.hpp>
#include <ferry/optim/detail/require_option.hpp>

#include <initializer_list>
#include <string_view>
#include <tuple>
#include <type_traits>

/// Options that are in their range in double, but 0 or infinite in float. A step in float refuses them.
namespace ferry::optim {

/// An option of a rule or a transform.
struct option_value {
  const char* name;
  double value;
};

/// How a number overflows or underflows in float, or null. Infinity and 0 themselves do neither.
/// @{
const char* float_overflow(double value);
const char* float_underflow(double value);
/// @}

/// Throws for an option whose number is `effect` in float; null is none.
void require_float(std::string_view rule, const option_value& option, const char* effect);

/// For a rule's or a transform's check_in_float(): throws invalid_argument with its name, the option and the
/// value for one that is 0 or infinite in float, but not in double.
void require_in_float(std::string_view rule, std::initializer_list<option_value> options);

/// The learning rate and such options. A schedule may end in rates that are 0 in float: such steps change as
/// little as those of the smallest rate, so they are taken.
void require_rate_in_float(std::string_view rule, double lr);

/// A largest norm or magnitude. One beyond float limits nothing, as infinity.
void require_limit_in_float(std::string_view rule, const option_value& limit);

/// The options common to rules with two moving averages.
template <class Rule>
void require_adam_in_float(const Rule& rule) {
  require_rate_in_float(Rule::name, rule.lr);
  require_in_float(Rule::name, {{"betas[0]", rule.betas[0]}, {"betas[1]", rule.betas[1]}, {"eps", rule.eps}});
  if constexpr (requires { rule.weight_decay; })
    require_in_float(Rule::name, {{"weight_decay", rule.weight_decay}});
}

}  // namespace ferry::optim

namespace ferry::detail {

/// Checks the options of a rule and of its transforms for a step that is computed in Compute.
template <class Compute, class Optimizer>
void require_options_in(const Optimizer& optimizer) {
  if constexpr (std::is_same_v<Compute, float>) {
    using parts = optim::detail::transforms_of<Optimizer>;
    const auto check = [](const auto& part) {
      if constexpr (requires { part.check_in_float(); }) part.check_in_float();
    };
    check(parts::rule_in(optimizer));
    std::apply([&](const auto&... transform) { (check(transform), ...); }, parts::transforms_in(optimizer));
  }
}

}  // namespace ferry::detail
