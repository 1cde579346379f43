// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <string_view>
#include <type_traits>

namespace ferry {

/// Categories of policies. A verb takes at most one policy of each category.
/// @{
struct path_category {};
struct bounds_category {};
struct duplicates_category {};
struct step_count_category {};
struct rounding_category {};
struct nonfinite_category {};
struct pooling_category {};
struct reduce_category {};  ///< of sharded tables
struct occupancy_category {};
struct overlap_category {};
struct overflow_category {};
struct source_bounds_category {};  ///< of one side of copy_rows
struct target_bounds_category {};  ///< of the other side
/// @}

/// A policy is an empty type with a `name` and a `policy_category`. Policies are a verb's last arguments, in
/// any order.
template <class T>
concept Policy = std::is_empty_v<T> && requires {
  typename T::policy_category;
  { T::name } -> std::convertible_to<std::string_view>;
};

/// A policy of one category.
template <class T, class Category>
concept PolicyOf = Policy<T> && std::same_as<typename T::policy_category, Category>;

/// How rows travel. The first three facts are false for a path that is chosen at run time.
///
///   sorts                  rows are visited in the order of the table
///   reaches_table          kernels of the given execution space dereference the table
///   occupies_host_threads  host threads move rows, the calling thread among them
///   chosen_at_run_time     the path is chosen for each call
template <class T>
concept PathPolicy = PolicyOf<T, path_category> && requires {
  { T::sorts } -> std::convertible_to<bool>;
  { T::reaches_table } -> std::convertible_to<bool>;
  { T::occupies_host_threads } -> std::convertible_to<bool>;
  { T::chosen_at_run_time } -> std::convertible_to<bool>;
};

/// The meaning of an index outside of [0, rows).
///
///   resolve(index, rows)  the row to use, or -1 for none
///   reports               whether an index without a row is an error
template <class T>
concept BoundsPolicy = PolicyOf<T, bounds_category> && requires {
  { T::reports } -> std::convertible_to<bool>;
  { T::resolve(int{}, 0ll) } -> std::convertible_to<long long>;
};

/// How several positions that name the same table row are handled.
///
///   combines    the values of all of them are combined
///   needs_plan  duplicates are found by sorting the indices
///   forbids     a duplicate is an error
///   any_order   declared true if the values are summed in any order
template <class T>
concept DuplicatesPolicy = PolicyOf<T, duplicates_category> && requires {
  { T::combines } -> std::convertible_to<bool>;
  { T::needs_plan } -> std::convertible_to<bool>;
  { T::forbids } -> std::convertible_to<bool>;
};

/// Which step number the update of a row uses.
///
///   counts_rows  each row has a counter
///   catches_up   the steps that a row missed are applied later
template <class T>
concept StepCountPolicy = PolicyOf<T, step_count_category> && requires {
  { T::counts_rows } -> std::convertible_to<bool>;
  { T::catches_up } -> std::convertible_to<bool>;
};

/// How a step rounds new weights of a narrow format; `is_random` for stochastic rounding.
template <class T>
concept RoundingPolicy = PolicyOf<T, rounding_category> && requires {
  { T::is_random } -> std::convertible_to<bool>;
};

/// The reaction of a step to gradients that are infinite or NaN.
///
///   looks    the gradients are scanned before the step
///   reports  such a gradient is an error
template <class T>
concept NonfinitePolicy = PolicyOf<T, nonfinite_category> && requires {
  { T::looks } -> std::convertible_to<bool>;
  { T::reports } -> std::convertible_to<bool>;
};

/// How the rows of a bag become one row.
///
///   divides  the sum is divided by the number of rows
///   selects  one element of each column is kept
template <class T>
concept PoolingPolicy = PolicyOf<T, pooling_category> && requires {
  { T::divides } -> std::convertible_to<bool>;
  { T::selects } -> std::convertible_to<bool>;
};

/// In which order ranks sum; `sums_locally` if each sums its own batch first.
template <class T>
concept ReducePolicy = PolicyOf<T, reduce_category> && requires {
  { T::sums_locally } -> std::convertible_to<bool>;
};

/// The size of a verb's kernels: most_blocks(multiprocessors) is their limit in blocks of 512 threads.
template <class T>
concept OccupancyPolicy = PolicyOf<T, occupancy_category> && requires {
  { T::most_blocks(132ll) } -> std::convertible_to<long long>;
};

/// Tables that share memory: rows pass through a buffer if the policy `buffers`, else they are refused.
template <class T>
concept OverlapPolicy = PolicyOf<T, overlap_category> && requires {
  { T::buffers } -> std::convertible_to<bool>;
};

/// Rows without a slot: left out if the policy `spills`, else an error.
template <class T>
concept OverflowPolicy = PolicyOf<T, overflow_category> && requires {
  { T::spills } -> std::convertible_to<bool>;
};

}  // namespace ferry
