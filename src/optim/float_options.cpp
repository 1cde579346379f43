// SPDX-License-Identifier: Apache-2.0
#include <ferry/optim/detail/float_options.hpp>

#include <ferry/tensor/detail/finite.hpp>

#include <limits>
#include <string>

namespace ferry::optim {

const char* float_overflow(double value) {
  constexpr double most = std::numeric_limits<float>::max();
  return ferry::detail::is_finite(value) && (value > most || value < -most) ? "infinite" : nullptr;
}

const char* float_underflow(double value) {
  constexpr double least = std::numeric_limits<float>::denorm_min();
  return value != 0.0 && value < least && value > -least ? "0" : nullptr;
}

void require_float(std::string_view rule, const option_value& option, const char* effect) {
  if (effect == nullptr) return;
  const std::string range =
      std::string("another number: it is ") + effect + " in float, in which the step is computed";
  require_option(rule, option.name, option.value, false, range.c_str());
}

void require_in_float(std::string_view rule, std::initializer_list<option_value> options) {
  for (const auto& option : options) {
    require_float(rule, option, float_overflow(option.value));
    require_float(rule, option, float_underflow(option.value));
  }
}

void require_rate_in_float(std::string_view rule, double lr) {
  require_float(rule, {"lr", lr}, float_overflow(lr));
}

void require_limit_in_float(std::string_view rule, const option_value& limit) {
  require_float(rule, limit, float_underflow(limit.value));
}

}  // namespace ferry::optim
