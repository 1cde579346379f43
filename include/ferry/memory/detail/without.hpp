// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdlib>
#include <string_view>

namespace ferry::detail {

/// True if the environment variable FERRY_WITHOUT, words with commas between them, names an ability of the
/// machine that backends are to do without, so that tests take the paths of other machines. Callers keep the
/// answer: it must not change while memory is in use, and each call reads the environment.
inline bool without(std::string_view ability) {
  const char* variable = std::getenv("FERRY_WITHOUT");
  for (std::string_view list = variable == nullptr ? "" : variable; !list.empty();) {
    const std::size_t comma = list.find(',');
    if (list.substr(0, comma) == ability) return true;
    list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
  }
  return false;
}

}  // namespace ferry::detail
