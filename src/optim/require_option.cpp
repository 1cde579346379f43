// SPDX-License-Identifier: Apache-2.0
#include <ferry/optim/detail/require_option.hpp>

#include <ferry/error.hpp>
#include <ferry/optim/detail/visit_options.hpp>
#include <ferry/tensor/detail/finite.hpp>

#include <array>
#include <charconv>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>

namespace ferry::optim {

void require_option(std::string_view rule, const char* option, double value, bool holds, const char* range) {
  if (holds && !ferry::detail::is_nan(value)) return;
  char text[32];
  const auto* end = std::to_chars(text, text + sizeof text, value).ptr;
  throw invalid_argument("ferry::optim::" + std::string(rule) + ": " + option + " is " +
                         std::string(static_cast<const char*>(text), end) + ", must be " + range);
}

void require_options(std::string_view rule, std::span<const option_range> options) {
  for (const auto& option : options) {
    require_option(rule, option.name, option.value, option.holds, option.range);
    require_option(rule, option.name, option.value, ferry::detail::is_finite(option.value), "finite");
  }
}

void require_not_negative(std::string_view rule, const char* option, double value) {
  require_option(rule, option, value, value >= 0.0, ">= 0");
}

void require_rate(std::string_view rule, const char* option, double value) {
  require_options(rule, std::array{decay_rate(option, value)});
}

const char* float_overflow(double value) {
  constexpr double most = std::numeric_limits<float>::max();
  return ferry::detail::is_finite(value) && (value > most || value < -most) ? "infinite" : nullptr;
}

const char* float_underflow(double value) {
  constexpr double least = std::numeric_limits<float>::denorm_min();
  return value != 0.0 && value < least && value > -least ? "0" : nullptr;
}

void require_float(std::string_view rule, const char* option, double value, const char* effect) {
  if (effect == nullptr) return;
  const std::string range =
      std::string("another number: it is ") + effect + " in float, in which the step is computed";
  require_option(rule, option, value, false, range.c_str());
}

void require_in_float(std::string_view rule, std::initializer_list<option_value> options) {
  for (const auto& option : options) {
    require_float(rule, option.name, option.value, float_overflow(option.value));
    require_float(rule, option.name, option.value, float_underflow(option.value));
  }
}

void require_options_in_float(std::string_view rule, std::span<const option_range> options) {
  for (const auto& option : options) {
    if (option.in_float == float_range::exact) require_in_float(rule, {{option.name, option.value}});
    if (option.in_float == float_range::may_vanish)
      require_float(rule, option.name, option.value, float_overflow(option.value));
  }
}

}  // namespace ferry::optim

namespace ferry::detail {

std::string_view listed_name(std::string_view names, std::size_t place, std::size_t count) {
  std::size_t listed = names.empty() ? 0 : 1;
  for (const char letter : names) listed += letter == ' ' ? 1 : 0;
  if (listed != count) return {};
  for (; place != 0; --place) names.remove_prefix(names.find(' ') + 1);
  return names.substr(0, names.find(' '));
}

std::string option_name(std::string_view names, std::size_t place, std::size_t count) {
  const std::string_view name = listed_name(names, place, count);
  return name.empty() ? "option " + std::to_string(place) : std::string(name);
}

}  // namespace ferry::detail
