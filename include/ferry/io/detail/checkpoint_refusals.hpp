// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/argument.hpp>
#include <ferry/io/detail/checkpoint_entry.hpp>
#include <ferry/tensor/array_traits.hpp>

#include <type_traits>

/// The sentences for objects that a checkpoint can't hold. Types are as forwarding references deduce them.
namespace ferry::detail {

/// True if an object is added under its name alone.
template <class T>
inline constexpr bool is_kept_alone =
    is_codes<std::remove_cv_t<T>> || std::is_arithmetic_v<T> || CheckpointPart<std::remove_cv_t<T>>;

template <class Object>
consteval bool is_refused_object() {
  using object = std::remove_reference_t<Object>;
  if constexpr (ArrayLike<object>)
    return false;
  else
    return !is_kept_alone<object> || std::is_const_v<object> || !std::is_lvalue_reference_v<Object>;
}

template <class Object>
consteval void refuse_object() {
  using object = std::remove_reference_t<Object>;
  static_assert(
      !is_kept_alone<object>,
      "ferry: load() writes to what a checkpoint was given, so that must be a variable that is not const.");
  static_assert(
      is_kept_alone<object>,
      "ferry: a checkpoint holds arrays (tensors, slices, views, vectors, spans), 8-bit and sharded tables, numbers, and a rule with its state: add(name, rule, state). Of a struct of numbers add std::span(&object, 1), of a text the span of its characters.");
}

template <class State>
consteval bool is_refused_state() {
  using object = std::remove_reference_t<State>;
  constexpr bool is_known = is_state<std::remove_cv_t<object>> || is_records<std::remove_cv_t<object>> ||
                            CheckpointPart<std::remove_cv_t<object>>;
  return !is_known || std::is_const_v<object> || !std::is_lvalue_reference_v<State>;
}

template <class State>
consteval void refuse_state() {
  static_assert(
      !is_refused_state<State>(),
      "ferry: a checkpoint takes a rule with the state that make_state made for it, or with records: add(name, rule, state); the state must be a variable that is not const, because load() writes to it.");
}

}  // namespace ferry::detail
