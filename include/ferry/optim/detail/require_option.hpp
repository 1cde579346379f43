// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/tensor/detail/finite.hpp>

#include <charconv>
#include <string>
#include <string_view>

namespace ferry::optim {

/// For a rule's check(): throws invalid_argument with rule, option and value if `holds` is false or the value
/// is not a number.
inline void require_option(std::string_view rule, const char* option, double value, bool holds,
                           const char* range) {
  if (holds && !ferry::detail::is_nan(value)) return;
  char text[32];
  const auto* end = std::to_chars(text, text + sizeof text, value).ptr;
  throw invalid_argument("ferry::optim::" + std::string(rule) + ": " + option + " is " +
                         std::string(static_cast<const char*>(text), end) + ", must be " + range);
}

/// For options that must be >= 0; refuses NaN.
inline void require_not_negative(std::string_view rule, const char* option, double value) {
  require_option(rule, option, value, value >= 0.0, ">= 0");
}

/// For decay rates of moving averages.
inline void require_rate(std::string_view rule, const char* option, double value) {
  require_option(rule, option, value, value >= 0.0 && value < 1.0, "in [0, 1)");
}

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
