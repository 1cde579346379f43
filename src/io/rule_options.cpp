// SPDX-License-Identifier: Apache-2.0
#include <ferry/io/detail/rule_options.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace ferry::detail {

std::string option_name(std::string_view names, std::size_t place, std::size_t count) {
  std::size_t listed = names.empty() ? 0 : 1;
  for (const char letter : names) listed += letter == ' ' ? 1 : 0;
  if (listed != count) return "option " + std::to_string(place);
  for (; place != 0; --place) names.remove_prefix(names.find(' ') + 1);
  return std::string(names.substr(0, names.find(' ')));
}

}  // namespace ferry::detail
