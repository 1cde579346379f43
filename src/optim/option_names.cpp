// SPDX-License-Identifier: Apache-2.0
#include <ferry/optim/detail/option_names.hpp>

#include <cstddef>
#include <string>
#include <string_view>

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
