// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/argument.hpp>
#include <ferry/concepts/optimizer.hpp>
#include <ferry/concepts/transform.hpp>
#include <ferry/io/detail/checkpoint_entry.hpp>
#include <ferry/io/detail/variable_entry.hpp>
#include <ferry/quantized/quantization.hpp>
#include <ferry/quantized/quantized_tensor.hpp>
#include <ferry/tensor/array_traits.hpp>

#include <string>
#include <type_traits>

namespace ferry::detail {

/// True if T is a table whose codes, scales and factor are entries of their own.
template <class T>
inline constexpr bool is_kept_in_parts = false;
template <class Q, class Space, class ScaleSpace>
inline constexpr bool is_kept_in_parts<quantized_tensor<Q, Space, ScaleSpace>> = !Q::in_records;

/// Adds codes, scales and factor of a table to a checkpoint, all of them or none.
template <class Checkpoint, class Table, class Drop>
void add_quantized(Checkpoint& run, const std::string& name, Table& table, const Drop& drop) {
  using Q = typename Table::quantization;
  run.add(name + "/codes", table.codes());
  [[maybe_unused]] bool has_entry_of_scales = false;
  try {
    if constexpr (has_scales<Q>) {
      run.add(name + "/scales", table.scales());
      has_entry_of_scales = true;
    }
    if constexpr (Q::has_tensor_scale) run.add(name + "/scale", *factor_of(table));
  } catch (...) {
    drop(name + "/codes");
    if (has_entry_of_scales) drop(name + "/scales");
    throw;
  }
}

// The sentences for objects that a checkpoint can't hold. Types are as forwarding references deduce them.

/// True if an object that is no variable is added under its name alone.
template <class T>
inline constexpr bool is_kept_table =
    is_quantized<std::remove_cv_t<T>> || is_kept_in_parts<std::remove_cv_t<T>> ||
    CheckpointPart<std::remove_cv_t<T>>;

template <class Object>
consteval bool is_refused_object() {
  using object = std::remove_reference_t<Object>;
  if constexpr (is_array_of_values<object>())
    return false;
  else if constexpr (!std::is_lvalue_reference_v<Object>)
    return true;
  else if constexpr (is_kept_table<object>)
    return std::is_const_v<object>;
  else
    return !is_kept_variable<object>;
}

template <class Object>
consteval void refuse_object() {
  using object = std::remove_reference_t<Object>;
  using plain = std::remove_cv_t<object>;
  constexpr bool is_known = is_kept_table<object> || is_kept_variable<object>;
  constexpr bool is_rule = Optimizer<plain> || Transform<plain>;
  constexpr bool refers = [] {
    if constexpr (ArrayLike<object>)
      return refers_elsewhere<file_element<object>>;
    else
      return refers_elsewhere<plain>;
  }();
  static_assert(
      !is_known || std::is_lvalue_reference_v<Object>,
      "ferry: a checkpoint keeps a reference to the object, so that must be a variable; one that is const is compared on load.");
  static_assert(!is_known || !std::is_lvalue_reference_v<Object> || !is_kept_table<object>,
                "ferry: load() writes to a table, so that must be a variable that is not const.");
  static_assert(!is_rule,
                "ferry: a checkpoint takes a rule together with its state: add(name, rule, state).");
  static_assert(
      !refers,
      "ferry: a checkpoint can't hold pointers or views of text, whose bytes mean nothing in another process; add what they point to.");
  constexpr bool is_array = ArrayLike<object> && !is_known && !refers;
  static_assert(
      !is_array,
      "ferry: a checkpoint saves the bytes of an array, so its elements must be trivially copyable; it takes texts as a std::vector<std::string>, and the vectors of a vector one by one.");
  static_assert(
      is_known || is_rule || refers || is_array,
      "ferry: a checkpoint holds arrays (tensors, slices, views, vectors, spans), 8-bit and sharded tables, numbers, std::string, engines of <random>, trivially copyable structs, and a rule with its state: add(name, rule, state). Add the members of any other class.");
}

template <class Rule, class State>
consteval bool is_refused_state() {
  using object = std::remove_reference_t<State>;
  constexpr bool is_known = is_state<std::remove_cv_t<object>> || is_records<std::remove_cv_t<object>> ||
                            CheckpointPart<std::remove_cv_t<object>>;
  if constexpr (std::is_convertible_v<State, std::string>)
    return kind_of_variable<std::remove_reference_t<Rule>>() != variable_kind::record;
  else
    return !is_known || std::is_const_v<object> || !std::is_lvalue_reference_v<State>;
}

template <class State>
consteval void refuse_state() {
  using object = std::remove_reference_t<State>;
  static_assert(
      !std::is_same_v<object, object>,
      "ferry: a checkpoint takes a rule with the state that make_state made for it, or with records: add(name, rule, state); the state must be a variable that is not const, because load() writes to it. A struct takes the name of its layout: add(name, object, layout).");
}

}  // namespace ferry::detail
