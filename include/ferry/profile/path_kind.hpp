// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace ferry {

/// The paths as values, for decisions at run time. The types path::* name the same paths.
enum class path_kind : unsigned char { direct, ordered, staged, cooperative };

/// The verbs that take a path.
enum class verb : unsigned char { gather, scatter, scatter_add, step, copy };

/// The name of a path, such as "direct".
constexpr std::string_view name(path_kind kind) {
  constexpr std::string_view names[] = {"direct", "ordered", "staged", "cooperative"};
  return names[static_cast<std::size_t>(kind)];
}

/// The name of a verb, such as "gather".
constexpr std::string_view name(verb action) {
  constexpr std::string_view names[] = {"gather", "scatter", "scatter_add", "step", "copy"};
  return names[static_cast<std::size_t>(action)];
}

}  // namespace ferry
