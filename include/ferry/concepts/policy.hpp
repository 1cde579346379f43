#pragma once

#include <concepts>
#include <string_view>
#include <type_traits>

namespace ferry {

/// The questions that a policy can answer; each verb takes at most one policy for each.
struct path_category {};
struct bounds_category {};
struct duplicates_category {};
struct step_count_category {};
struct rounding_category {};
struct nonfinite_category {};

/// A policy is an empty type with a name and one category. Policies are passed last, in any order.
template <class T>
concept Policy = std::is_empty_v<T> && requires {
  typename T::policy_category;
  { T::name } -> std::convertible_to<std::string_view>;
};

template <class T, class Category>
concept PolicyOf = Policy<T> && std::same_as<typename T::policy_category, Category>;

/// How rows travel. `sorts` says that they do in the order of the table's rows, `reaches_table` that kernels of the given
/// execution space dereference them, `occupies_host_threads` that host threads move them, the caller's among them. One
/// that is `chosen_at_run_time` has none of these before it is chosen.
template <class T>
concept PathPolicy = PolicyOf<T, path_category> && requires {
  { T::sorts } -> std::convertible_to<bool>;
  { T::reaches_table } -> std::convertible_to<bool>;
  { T::occupies_host_threads } -> std::convertible_to<bool>;
  { T::chosen_at_run_time } -> std::convertible_to<bool>;
};

/// `resolve(index, rows)` gives the row to use, or -1 where there is none; `reports` says whether such an
/// index is an error.
template <class T>
concept BoundsPolicy = PolicyOf<T, bounds_category> && requires {
  { T::reports } -> std::convertible_to<bool>;
  { T::resolve(int{}, 0ll) } -> std::convertible_to<long long>;
};

/// Which of the rows that name the same table row count: `combines` says that all of them do, `needs_plan`
/// that they must be found by sorting, `forbids` that there must be none.
template <class T>
concept DuplicatesPolicy = PolicyOf<T, duplicates_category> && requires {
  { T::combines } -> std::convertible_to<bool>;
  { T::needs_plan } -> std::convertible_to<bool>;
  { T::forbids } -> std::convertible_to<bool>;
};

/// Which number of steps a row's update goes by: `counts_rows` says that each row has a counter, `catches_up` that the
/// steps which a row missed are made up for.
template <class T>
concept StepCountPolicy = PolicyOf<T, step_count_category> && requires {
  { T::counts_rows } -> std::convertible_to<bool>;
  { T::catches_up } -> std::convertible_to<bool>;
};

/// How a step rounds new weights of a narrow format.
template <class T>
concept RoundingPolicy = PolicyOf<T, rounding_category> && requires {
  { T::is_random } -> std::convertible_to<bool>;
};

/// What a step does where a gradient is infinite or not a number: `looks` says that it is looked for, `reports` that it
/// is an error.
template <class T>
concept NonfinitePolicy = PolicyOf<T, nonfinite_category> && requires {
  { T::looks } -> std::convertible_to<bool>;
  { T::reports } -> std::convertible_to<bool>;
};

}  // namespace ferry
