// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/policy.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>
#include <string_view>
#include <type_traits>

/// Policies for an index outside of [0, rows). Only `unchecked` can touch memory outside of the table.
namespace ferry::bounds {

namespace detail {
/// One comparison: without its sign a negative index exceeds each number of rows.
template <class Index>
KOKKOS_FUNCTION constexpr bool inside(Index index, std::int64_t rows) {
  return static_cast<std::uint64_t>(index) < static_cast<std::uint64_t>(rows);
}

/// The facts of most of these policies; each states its name and those that differ.
struct facts {
  using policy_category = bounds_category;
  static constexpr bool reports = false;
  template <class Index>
  KOKKOS_FUNCTION static constexpr std::int64_t resolve(Index index, std::int64_t rows) {
    return detail::inside(index, rows) ? static_cast<std::int64_t>(index) : -1;
  }
};
}  // namespace detail

/// The default: bad indices are counted, and ticket::wait() throws ferry::out_of_range with the number and
/// the first (position, index). A verb that writes to the table then writes nothing. A gather leaves the
/// destination rows of the bad positions unchanged.
struct check : detail::facts {
  static constexpr std::string_view name = "bounds::check";  ///< see ferry::BoundsPolicy
  static constexpr bool reports = true;                      ///< see ferry::BoundsPolicy
};
static_assert(BoundsPolicy<check>);

/// A negative index selects row 0, a too large one the last row.
struct clamp : detail::facts {
  static constexpr std::string_view name = "bounds::clamp";  ///< see ferry::BoundsPolicy
  /// See ferry::BoundsPolicy.
  template <class Index>
  KOKKOS_FUNCTION static constexpr std::int64_t resolve(Index index, std::int64_t rows) {
    if (detail::inside(index, rows)) return static_cast<std::int64_t>(index);
    if constexpr (std::is_signed_v<Index>)
      if (index < 0) return 0;
    return rows - 1;
  }
};
static_assert(BoundsPolicy<clamp>);

/// The position is ignored: a gather leaves its destination row unchanged, a scatter or step does not use its
/// value.
struct skip : detail::facts {
  static constexpr std::string_view name = "bounds::skip";  ///< see ferry::BoundsPolicy
};
static_assert(BoundsPolicy<skip>);

/// The caller promises that every index is inside. Undefined behaviour if one is not.
struct unchecked : detail::facts {
  static constexpr std::string_view name = "bounds::unchecked";  ///< see ferry::BoundsPolicy
  /// See ferry::BoundsPolicy.
  template <class Index>
  KOKKOS_FUNCTION static constexpr std::int64_t resolve(Index index, std::int64_t) {
    return static_cast<std::int64_t>(index);
  }
};
static_assert(BoundsPolicy<unchecked>);

}  // namespace ferry::bounds

namespace ferry {

/// The bounds policy of the rows that copy_rows reads. A policy that is not wrapped counts for both sides.
template <BoundsPolicy Bounds>
struct source_bounds {
  /// See ferry::Policy.
  /// @{
  using policy_category = source_bounds_category;
  static constexpr std::string_view name = Bounds::name;
  using bounds = Bounds;
  /// @}
};
/// The bounds policy of the rows that copy_rows writes.
template <BoundsPolicy Bounds>
struct target_bounds {
  /// See ferry::Policy.
  /// @{
  using policy_category = target_bounds_category;
  static constexpr std::string_view name = Bounds::name;
  using bounds = Bounds;
  /// @}
};

}  // namespace ferry
