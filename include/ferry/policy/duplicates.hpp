// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/policy.hpp>

#include <string_view>

/// Policies for several positions of a batch that name the same row. "First" and "last" refer to positions,
/// so the result is the same on every backend and for every number of threads; only sum_any_order differs.
namespace ferry::duplicates {

namespace detail {
/// The facts of most of these policies; each states its name and those that differ.
struct facts {
  using policy_category = duplicates_category;
  static constexpr bool combines = false, needs_plan = true, forbids = false;
};
}  // namespace detail

/// The values are summed in the order of their positions, in the accumulation type.
struct sum : detail::facts {
  static constexpr std::string_view name = "duplicates::sum";  ///< see ferry::DuplicatesPolicy
  static constexpr bool combines = true;                       ///< see ferry::DuplicatesPolicy
};
static_assert(DuplicatesPolicy<sum>);

/// The values are summed in any order, so the last bits of floating-point sums differ from run to run. One
/// value, or the sum of several, is converted to the table's element type and added to the row where it lies,
/// rounded to nearest: narrow formats lose more than under `sum`. Integers give the bits of `sum`.
///
/// A device adds atomically to a table in device_space and makes no plan. On a host each row belongs to one
/// thread, which adds in the order of the batch. Where sorting is no slower it means `sum`: with a plan, on
/// path::ordered, and for a device and a table in host memory. For scatter_add, and for step with rules that
/// are linear in the gradient, see ferry::LinearOptimizer.
struct sum_any_order : detail::facts {
  static constexpr std::string_view name = "duplicates::sum_any_order";  ///< see ferry::DuplicatesPolicy
  static constexpr bool combines = true;                                 ///< see ferry::DuplicatesPolicy
  static constexpr bool needs_plan = false;                              ///< see ferry::DuplicatesPolicy
  static constexpr bool any_order = true;                                ///< see ferry::DuplicatesPolicy
};
static_assert(DuplicatesPolicy<sum_any_order>);

/// The sum divided by the number of positions; integers round towards zero.
struct mean : detail::facts {
  static constexpr std::string_view name = "duplicates::mean";  ///< see ferry::DuplicatesPolicy
  static constexpr bool combines = true;                        ///< see ferry::DuplicatesPolicy
};
static_assert(DuplicatesPolicy<mean>);

/// The value at the last position is used.
struct last : detail::facts {
  static constexpr std::string_view name = "duplicates::last";  ///< see ferry::DuplicatesPolicy
};
static_assert(DuplicatesPolicy<last>);

/// The value at the first position is used.
struct first : detail::facts {
  static constexpr std::string_view name = "duplicates::first";  ///< see ferry::DuplicatesPolicy
};
static_assert(DuplicatesPolicy<first>);

/// The caller promises that no row occurs twice, so nothing is sorted. Where one is, scatter
/// keeps one of the values, and a verb that updates rows may mix several.
struct assume_unique : detail::facts {
  static constexpr std::string_view name = "duplicates::assume_unique";  ///< see ferry::DuplicatesPolicy
  static constexpr bool needs_plan = false;                              ///< see ferry::DuplicatesPolicy
};
static_assert(DuplicatesPolicy<assume_unique>);

/// A row that occurs twice is an error: ticket::wait() throws ferry::invalid_argument, and the table is
/// unchanged.
struct reject : detail::facts {
  static constexpr std::string_view name = "duplicates::reject";  ///< see ferry::DuplicatesPolicy
  static constexpr bool forbids = true;                           ///< see ferry::DuplicatesPolicy
};
static_assert(DuplicatesPolicy<reject>);

}  // namespace ferry::duplicates

namespace ferry::detail {

/// True if the values of a row may be added one by one, in any order.
template <class Duplicates>
inline constexpr bool in_any_order = requires {
  requires Duplicates::any_order;
};

}  // namespace ferry::detail
