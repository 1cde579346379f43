// SPDX-License-Identifier: Apache-2.0
#include <ferry/optim/detail/require_option.hpp>

#include <ferry/error.hpp>
#include <ferry/tensor/detail/finite.hpp>

#include <charconv>
#include <string>

namespace ferry::optim {

void require_option(std::string_view rule, const char* option, double value, bool holds, const char* range) {
  if (holds && !ferry::detail::is_nan(value)) return;
  char text[32];
  const auto* end = std::to_chars(text, text + sizeof text, value).ptr;
  throw invalid_argument("ferry::optim::" + std::string(rule) + ": " + option + " is " +
                         std::string(static_cast<const char*>(text), end) + ", must be " + range);
}

void require_not_negative(std::string_view rule, const char* option, double value) {
  require_option(rule, option, value, value >= 0.0, ">= 0");
}

void require_rate(std::string_view rule, const char* option, double value) {
  require_option(rule, option, value, value >= 0.0 && value < 1.0, "in [0, 1)");
}

}  // namespace ferry::optim
