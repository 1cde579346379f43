#pragma once

#include <ferry/runtime/detail/backend.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/memory/spaces.hpp>

#include <type_traits>

namespace ferry::detail {

/// Paths that walk over the rows in the table's order, so that indices are sorted first.
template <class Path>
inline constexpr bool is_sorted_path =
    std::is_same_v<Path, path::ordered> || std::is_same_v<Path, path::cooperative>;

/// path::staged goes through host memory, so one side must be there.
template <class... Spaces>
inline constexpr bool any_host_space = (Spaces::is_host_accessible || ...);

}  // namespace ferry::detail
