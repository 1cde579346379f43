#pragma once

#include <ferry/concepts/policy.hpp>

#include <string_view>

/// What happens where several positions of a batch name the same row. "First" and "last" are meant by
/// position, so the result is the same on every backend and for every number of threads.
namespace ferry::duplicates {

/// All of their values are added up, in the order of their positions, in the accumulation type.
struct sum {
  using policy_category = duplicates_category;
  static constexpr std::string_view name = "duplicates::sum";
  static constexpr bool combines = true;
  static constexpr bool needs_plan = true;
  static constexpr bool forbids = false;
};
static_assert(DuplicatesPolicy<sum>);

/// The sum divided by their number; integers round towards zero.
struct mean {
  using policy_category = duplicates_category;
  static constexpr std::string_view name = "duplicates::mean";
  static constexpr bool combines = true;
  static constexpr bool needs_plan = true;
  static constexpr bool forbids = false;
};
static_assert(DuplicatesPolicy<mean>);

/// Only the value at the last position counts.
struct last {
  using policy_category = duplicates_category;
  static constexpr std::string_view name = "duplicates::last";
  static constexpr bool combines = false;
  static constexpr bool needs_plan = true;
  static constexpr bool forbids = false;
};
static_assert(DuplicatesPolicy<last>);

/// Only the value at the first position counts.
struct first {
  using policy_category = duplicates_category;
  static constexpr std::string_view name = "duplicates::first";
  static constexpr bool combines = false;
  static constexpr bool needs_plan = true;
  static constexpr bool forbids = false;
};
static_assert(DuplicatesPolicy<first>);

/// The caller's promise that no row is named twice: nothing is sorted. Broken, one of the values wins or, in
/// an update, a torn mixture.
struct assume_unique {
  using policy_category = duplicates_category;
  static constexpr std::string_view name = "duplicates::assume_unique";
  static constexpr bool combines = false;
  static constexpr bool needs_plan = false;
  static constexpr bool forbids = false;
};
static_assert(DuplicatesPolicy<assume_unique>);

/// A row that is named twice is an error, thrown by ticket::wait() as ferry::invalid_argument; the table is
/// left as it was.
struct reject {
  using policy_category = duplicates_category;
  static constexpr std::string_view name = "duplicates::reject";
  static constexpr bool combines = false;
  static constexpr bool needs_plan = true;
  static constexpr bool forbids = true;
};
static_assert(DuplicatesPolicy<reject>);

}  // namespace ferry::duplicates
