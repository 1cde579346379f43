#pragma once

#include <ferry/execution/backend.hpp>
#include <ferry/execution/path.hpp>
#include <ferry/memory/spaces.hpp>

#include <type_traits>

namespace ferry::detail {

/// The rule behind path::automatic. A host execution space dereferences everything. A device dereferences its
/// own and mapped memory at full speed; a table in pinned memory only behind small device pages, which
/// collapses for large tables, so its rows are staged, as are all that touch pageable memory.
template <class Exec, class TableSpace, class... OtherSpaces>
consteval auto automatic_path() {
  constexpr bool pageable =
      std::is_same_v<TableSpace, pageable_space> || (std::is_same_v<OtherSpaces, pageable_space> || ...);
  if constexpr (is_host_exec<Exec>)
    return path::direct{};
  else if constexpr (pageable || std::is_same_v<TableSpace, pinned_space>)
    return path::staged{};
  else
    return path::direct{};
}

template <class Path, class Exec, class TableSpace, class... OtherSpaces>
using resolved_path = std::conditional_t<std::is_same_v<Path, path::automatic>,
                                         decltype(automatic_path<Exec, TableSpace, OtherSpaces...>()), Path>;

/// Paths that walk over the rows in the table's order, so that indices are sorted first.
template <class Path>
inline constexpr bool is_sorted_path =
    std::is_same_v<Path, path::ordered> || std::is_same_v<Path, path::cooperative>;

/// path::staged goes through host memory, so one side must be there.
template <class... Spaces>
inline constexpr bool any_host_space = (Spaces::is_host_accessible || ...);

}  // namespace ferry::detail
