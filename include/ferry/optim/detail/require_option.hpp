// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace ferry::optim {

/// For a rule's check(): throws invalid_argument with rule, option and value if `holds` is false or the value
/// is not a number.
void require_option(std::string_view rule, const char* option, double value, bool holds, const char* range);

/// For options that must be >= 0; refuses NaN.
void require_not_negative(std::string_view rule, const char* option, double value);

/// For decay rates of moving averages.
void require_rate(std::string_view rule, const char* option, double value);

/// The checks common to rules with two moving averages.
template <class Rule>
void require_adam_options(const Rule& rule) {
  require_not_negative(Rule::name, "lr", rule.lr);
  require_rate(Rule::name, "betas[0]", rule.betas[0]);
  require_rate(Rule::name, "betas[1]", rule.betas[1]);
  require_not_negative(Rule::name, "eps", rule.eps);
  if constexpr (requires { rule.weight_decay; })
    require_not_negative(Rule::name, "weight_decay", rule.weight_decay);
}

}  // namespace ferry::optim
