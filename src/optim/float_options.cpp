// SPDX-License-Identifier: Apache-2.0
#include <ferry/optim/detail/float_options.hpp>

namespace ferry::optim {

void require_float(std::string_view rule, const option_value& option, const char* effect) {
  if (effect == nullptr) return;
  const std::string range =
      std::string("another number: it is ") + effect + " in float, in which the step is computed";
  require_option(rule, option.name, option.value, false, range.c_str());
}

}  // namespace ferry::optim
