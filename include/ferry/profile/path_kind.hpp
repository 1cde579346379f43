#pragma once

#include <cstddef>
#include <string_view>

namespace ferry {

/// The paths as values, for what is decided at run time; path::* are the same paths as types.
enum class path_kind : unsigned char { direct, ordered, staged, cooperative };

/// The operations that take a path.
enum class verb : unsigned char { gather, scatter, scatter_add, step, copy };

constexpr std::string_view name(path_kind which) {
  constexpr std::string_view names[] = {"direct", "ordered", "staged", "cooperative"};
  return names[static_cast<std::size_t>(which)];
}

constexpr std::string_view name(verb which) {
  constexpr std::string_view names[] = {"gather", "scatter", "scatter_add", "step", "copy"};
  return names[static_cast<std::size_t>(which)];
}

}  // namespace ferry
