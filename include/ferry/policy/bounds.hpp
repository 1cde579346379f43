#pragma once

#include <ferry/concepts/policy.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>
#include <string_view>
#include <type_traits>

/// What happens to an index outside of [0, rows). No policy but `unchecked` ever touches memory outside of
/// the table.
namespace ferry::bounds {

namespace detail {
/// Compared in 64 bits, so that a huge unsigned index is no negative one.
template <class Index>
KOKKOS_FUNCTION constexpr bool inside(Index index, std::int64_t rows) {
  if constexpr (std::is_signed_v<Index>)
    return index >= 0 && static_cast<std::int64_t>(index) < rows;
  else
    return static_cast<std::uint64_t>(index) < static_cast<std::uint64_t>(rows);
}
}  // namespace detail

/// Counted, the first one remembered, and thrown as ferry::out_of_range by ticket::wait(). A verb that writes
/// to the table then writes nothing at all; a gather leaves the rows of the bad positions as they are. The
/// default.
struct check {
  using policy_category = bounds_category;
  static constexpr std::string_view name = "bounds::check";
  static constexpr bool reports = true;
  template <class Index>
  KOKKOS_FUNCTION static constexpr std::int64_t resolve(Index index, std::int64_t rows) {
    return detail::inside(index, rows) ? static_cast<std::int64_t>(index) : -1;
  }
};
static_assert(BoundsPolicy<check>);

/// A negative index means row 0, a too large one the last row.
struct clamp {
  using policy_category = bounds_category;
  static constexpr std::string_view name = "bounds::clamp";
  static constexpr bool reports = false;
  template <class Index>
  KOKKOS_FUNCTION static constexpr std::int64_t resolve(Index index, std::int64_t rows) {
    if (detail::inside(index, rows)) return static_cast<std::int64_t>(index);
    if constexpr (std::is_signed_v<Index>)
      if (index < 0) return 0;
    return rows - 1;
  }
};
static_assert(BoundsPolicy<clamp>);

/// The position takes no part: a gather leaves its destination row as it is, a scatter or step ignores its
/// value.
struct skip {
  using policy_category = bounds_category;
  static constexpr std::string_view name = "bounds::skip";
  static constexpr bool reports = false;
  template <class Index>
  KOKKOS_FUNCTION static constexpr std::int64_t resolve(Index index, std::int64_t rows) {
    return detail::inside(index, rows) ? static_cast<std::int64_t>(index) : -1;
  }
};
static_assert(BoundsPolicy<skip>);

/// The caller's promise that every index is inside; a broken promise is undefined behaviour.
struct unchecked {
  using policy_category = bounds_category;
  static constexpr std::string_view name = "bounds::unchecked";
  static constexpr bool reports = false;
  template <class Index>
  KOKKOS_FUNCTION static constexpr std::int64_t resolve(Index index, std::int64_t) {
    return static_cast<std::int64_t>(index);
  }
};
static_assert(BoundsPolicy<unchecked>);

}  // namespace ferry::bounds
