// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdlib>
#include <string_view>

namespace ferry::detail {

/// True if a list of words with commas between them names `ability`.
constexpr bool names(std::string_view list, std::string_view ability) {
  for (;;) {
    const std::size_t comma = list.find(',');
    if (list.substr(0, comma) == ability) return true;
    if (comma == std::string_view::npos) return false;
    list.remove_prefix(comma + 1);
  }
}

/// True if the environment variable FERRY_WITHOUT names an ability of the machine that backends are to do
/// without, so that tests take the paths of other machines. Callers keep the answer: it must not change while
/// memory is in use, and each call reads the environment.
inline bool without(std::string_view ability) {
  const char* list = std::getenv("FERRY_WITHOUT");
  return list != nullptr && names(list, ability);
}

}  // namespace ferry::detail
