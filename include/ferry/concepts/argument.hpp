// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/optimizer.hpp>

#include <type_traits>

// Kinds of arguments that several verbs distinguish. Each type specialises its variable after its definition.
namespace ferry {

class row_plan;

namespace detail {

template <class T>
inline constexpr bool is_plan = std::is_same_v<std::remove_cvref_t<T>, row_plan>;

/// True if T is a table of records of 8-bit codes.
template <class T>
inline constexpr bool is_codes = false;

/// True if T is a table of quantized rows, also one of records.
template <class T>
inline constexpr bool is_quantized = false;

/// True if T is an optimizer, with or without transforms.
template <class T>
inline constexpr bool is_optimizer_argument = Optimizer<T>;

/// True if T is the state of an optimizer for one table.
template <class T>
inline constexpr bool is_state = false;

/// True if T is a range of such states: a std::vector or std::array of them, or a span.
template <class T>
inline constexpr bool is_state_range = requires {
  requires is_state<std::remove_cv_t<typename T::value_type>>;
};

/// True if T is a table whose rows hold their state.
template <class T>
inline constexpr bool is_records = false;

/// True if T is a table that is no array, cached or sharded say. Its verbs are overloads of their own.
template <class T>
inline constexpr bool is_table_object = false;

/// True if T is the plan of a table object.
template <class T>
inline constexpr bool is_plan_object = false;

/// True if T was refused with a sentence when it was made. Verbs add no more than how they are called.
template <class T>
inline constexpr bool is_refused = false;

/// True if T is a list of tables.
template <class T>
inline constexpr bool is_table_list = false;

}  // namespace detail
}  // namespace ferry
