#pragma once

#include <ferry/concepts/optimizer.hpp>

#include <type_traits>

/// Kinds of arguments that more than one verb tells apart. Each type says what it is under its own definition.
namespace ferry {

class row_plan;

namespace detail {

template <class T>
inline constexpr bool is_plan = std::is_same_v<std::remove_cvref_t<T>, row_plan>;

/// An 8-bit table.
template <class T>
inline constexpr bool is_codes = false;

/// An optimizer, with transforms or without.
template <class T>
inline constexpr bool is_optimizer_argument = Optimizer<T>;

/// The state of an optimizer for one table.
template <class T>
inline constexpr bool is_state = false;

/// Rows that hold their state.
template <class T>
inline constexpr bool is_records = false;

}  // namespace detail
}  // namespace ferry
