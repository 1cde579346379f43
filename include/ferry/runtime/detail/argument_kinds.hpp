// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/argument.hpp>
#include <ferry/concepts/element.hpp>
#include <ferry/concepts/execution_space.hpp>
#include <ferry/concepts/memory_space.hpp>
#include <ferry/concepts/policy.hpp>
#include <ferry/policy/policies.hpp>
#include <ferry/tensor/array_traits.hpp>

#include <concepts>
#include <string_view>
#include <type_traits>
#include <utility>

/// The flaws of arguments, and their sentences.
namespace ferry::detail {

enum class flaw {
  none,
  call,  ///< an argument is missing or in another position
  no_execution_space,
  late_execution_space,
  early_policy,
  no_policy,
  no_array,
  no_elements,
  no_indices,
  no_index_array,
  braced_indices,
  no_offsets,
  no_rule,
  no_states,
  one_table,
  table_range,
  quantized,
  read_only,
  constant,
  temporary
};

/// Fails with one sentence, which is the first message of the compiler. `Subject` and `Arguments` are the
/// call that fails, because a compiler prints a message once for each.
template <flaw Found, class Subject, class... Arguments>
consteval void fail_with() {
  static_assert(
      Found != flaw::no_execution_space,
      "ferry: the first argument of a verb must be an instance of a Kokkos execution space, Kokkos::DefaultExecutionSpace{} say.");
  static_assert(
      Found != flaw::late_execution_space,
      "ferry: the instance of the execution space comes first, before table, indices and batch: verb(exec, table, ...).");
  static_assert(
      Found != flaw::early_policy,
      "ferry: policies such as path::direct{} are the last arguments of a verb, after all arrays and numbers.");
  static_assert(
      Found != flaw::no_policy,
      "ferry: the trailing arguments must be policies: path::*, bounds::*, duplicates::*, for a step also step_count::*, rounding::*, nonfinite::*, or a policies<...> bundle of them.");
  static_assert(
      Found != flaw::no_array,
      "ferry: tables and batches must be a ferry::tensor, a tensor_view, a Kokkos::View, a std::span, a std::vector, a std::array, or a type with ferry::array_traits; for a pointer, a unique_ptr or an mdspan give ferry::tensor_view(pointer, rows, width), or ferry::tensor_view<T, Space>(pointer, rows, width) where the memory is no ordinary host memory, for a Kokkos::DualView one of its two views. <ferry/interop/mdspan.hpp>, dual_view.hpp and eigen.hpp make arrays of mdspans, DualViews and Eigen's matrices.");
  static_assert(
      Found != flaw::no_elements,
      "ferry: the elements of an array must be trivially copyable, because verbs copy their bytes: numbers, or structs of numbers. A std::string or a std::vector owns memory; of a std::vector of std::vectors make one array of rows, ferry::tensor_view(pointer, rows, width).");
  static_assert(
      Found != flaw::no_indices,
      "ferry: the indices must be a row_plan, or a rank-1 array of int32, uint32, int64 or uint64.");
  static_assert(
      Found != flaw::no_index_array,
      "ferry: the indices must be a row_plan, or a rank-1 array of int32, uint32, int64 or uint64: a std::vector, a std::span, a std::array, a Kokkos::View or a ferry::tensor; for a pointer, a unique_ptr or an mdspan give ferry::tensor_view(pointer, count), as for a table ferry::tensor_view(pointer, rows, width).");
  static_assert(
      Found != flaw::braced_indices,
      "ferry: the indices must be an array with a name for its type: write std::array{1, 2, 3} in place of {1, 2, 3}.");
  static_assert(
      Found != flaw::no_offsets,
      "ferry: the offsets of bags must be a rank-1 array of int32, uint32, int64 or uint64, or the number of positions that every bag has.");
  static_assert(
      Found != flaw::no_rule,
      "ferry: the verb needs an optimizer rule, ferry::optim::adam say; one of your own has the members name, min_fields, fields(), check() and coefficients<C>(step), which returns the update of a step, see ferry::Optimizer.");
  static_assert(
      Found != flaw::no_states,
      "ferry: step_bags over for_each_table takes a range of states, one for each table in their order: a std::vector or a std::array of what make_state returns.");
  static_assert(
      Found != flaw::one_table,
      "ferry: the tables of for_each_table serve gather_bags, step_bags and copy_rows alone; call other verbs once for each table.");
  static_assert(
      Found != flaw::table_range,
      "ferry: a range of tables is no table: gather_bags, step_bags and copy_rows take one as for_each_table(range); call other verbs once for each table.");
  static_assert(
      Found != flaw::quantized,
      "ferry: this argument must be an array of numbers, not a table of quantized rows; quantize(exec, numbers, table) writes such a table, and dequantize(exec, table, numbers) reads it.");
  static_assert(Found != flaw::read_only,
                "ferry: the verb writes to this array, but its elements are const.");
  static_assert(Found != flaw::constant,
                "ferry: the verb writes to this table, state or records, so it must not be const.");
  static_assert(
      Found != flaw::temporary,
      "ferry: the verb writes to a temporary table, state or records, which ends while the work may be in flight; keep it in a variable.");
}

}  // namespace ferry::detail

/// The kinds of a verb's arguments, as bits: an array of integers is an array and may be indices.
namespace ferry::detail {

template <class T>
using traits_of = array_traits<std::remove_cvref_t<T>>;

template <class T>
concept AnArray = ArrayLike<std::remove_cvref_t<T>>;

/// True if the elements of an array may be copied byte by byte.
template <class Array>
consteval bool holds_elements() {
  if constexpr (AnArray<Array>)
    return Element<
        std::remove_pointer_t<decltype(make_ref(std::declval<std::remove_cvref_t<Array>&>()).data)>>;
  else
    return false;
}

template <class T>
consteval bool is_index_argument() {
  if constexpr (is_plan<T>)
    return true;
  else if constexpr (AnArray<T>)
    return IndexElement<std::remove_const_t<typename traits_of<T>::value_type>>;
  else
    return false;
}

namespace kind {
inline constexpr unsigned execution_space = 1u << 0;
inline constexpr unsigned policy = 1u << 1;
inline constexpr unsigned array = 1u << 2;
inline constexpr unsigned unfit_array = 1u << 3;  ///< its elements may not be copied byte by byte
inline constexpr unsigned indices = 1u << 4;      ///< an array of integers, or a plan
inline constexpr unsigned plan = 1u << 5;
inline constexpr unsigned codes = 1u << 6;
inline constexpr unsigned table_object = 1u << 7;  ///< a table that is no array, cached or sharded say
inline constexpr unsigned table_list = 1u << 8;
inline constexpr unsigned rule = 1u << 9;
inline constexpr unsigned state = 1u << 10;
inline constexpr unsigned records = 1u << 11;
inline constexpr unsigned integer = 1u << 12;
inline constexpr unsigned number = 1u << 13;
inline constexpr unsigned text = 1u << 14;
inline constexpr unsigned states = 1u << 15;       ///< a range of states
inline constexpr unsigned table_range = 1u << 16;  ///< a range of tables, not within for_each_table
inline constexpr unsigned object = 1u << 17;       ///< anything else
inline constexpr unsigned constant = 1u << 18;     ///< may not be written
inline constexpr unsigned temporary = 1u << 19;    ///< ends with the statement
inline constexpr unsigned read_only = 1u << 20;    ///< an array whose elements may not be written
inline constexpr unsigned any = constant - 1;
}  // namespace kind

template <class T>
inline constexpr bool is_policy_bundle = false;
template <class... Ps>
inline constexpr bool is_policy_bundle<policies<Ps...>> = true;

/// True for a range of tables, whose elements are no elements of an array. A std::vector of std::vectors has
/// rows, rather.
template <class T>
inline constexpr bool is_table_range = false;
template <class T>
  requires requires { typename T::value_type; }
inline constexpr bool is_table_range<T> =
    is_table_object<typename T::value_type> || is_quantized<typename T::value_type> ||
    (ArrayLike<typename T::value_type> && !requires(typename T::value_type element) { element.pop_back(); });

template <class T>
consteval unsigned kinds_of_array() {
  if constexpr (!holds_elements<T>())
    return is_table_range<T> ? kind::table_range : kind::unfit_array;
  else
    return is_index_argument<T>() ? kind::array | kind::indices : kind::array;
}

template <class T>
consteval unsigned kinds_of_type() {
  if constexpr (ExecutionSpace<T>)
    return kind::execution_space;
  else if constexpr (std::is_array_v<T> && std::is_convertible_v<const T&, std::string_view>)
    return kind::array | kind::text;
  else if constexpr (is_state_range<T>)
    return kind::states;
  else if constexpr (AnArray<T>)
    return kinds_of_array<T>();
  else if constexpr (std::is_integral_v<T>)
    return kind::integer | kind::number;
  else if constexpr (std::is_arithmetic_v<T>)
    return kind::number;
  else if constexpr (std::is_convertible_v<const T&, std::string_view>)
    return kind::text;
  else if constexpr (!std::is_class_v<T>)
    return kind::object;
  else if constexpr (is_plan<T> || is_plan_object<T>)
    return kind::plan | kind::indices;
  else if constexpr (is_quantized<T>)
    return kind::codes;
  else if constexpr (is_table_object<T>)
    return is_records<T> ? kind::table_object | kind::records : kind::table_object;
  else if constexpr (is_table_list<T>)
    return kind::table_list;
  else if constexpr (is_state<T>)
    return kind::state;
  else if constexpr (is_records<T>)
    return kind::records;
  else if constexpr (Policy<T> || is_policy_bundle<T>)
    return kind::policy;
  else if constexpr (is_optimizer_argument<T> || DescribesRule<T>)
    return kind::rule;
  else if constexpr (is_refused<T>)
    return 0;
  else
    return kind::object;
}
template <class T>
inline constexpr unsigned kinds_of_plain = kinds_of_type<T>();

/// True for an array of const elements. `Array` is const if the argument is.
template <class Array>
consteval bool holds_const_elements() {
  if constexpr (ArrayLike<Array>)
    return std::is_const_v<std::remove_pointer_t<decltype(make_ref(std::declval<Array&>()).data)>>;
  else
    return false;
}

/// The kinds of an argument: T is an lvalue reference for a variable, as a forwarding reference deduces it.
template <class T>
inline constexpr unsigned kinds_of = kinds_of_plain<std::remove_cvref_t<T>> |
                                     (std::is_const_v<std::remove_reference_t<T>> ? kind::constant : 0u) |
                                     (std::is_lvalue_reference_v<T> ? 0u : kind::temporary) |
                                     (holds_const_elements<std::remove_reference_t<T>>() ? kind::read_only
                                                                                         : 0u);

template <class Space>
consteval void require_memory_space() {
  static_assert(
      MemorySpace<Space>,
      "ferry: the template argument of gather<Space> and clone<Space> is one of ferry's memory spaces: device_space, pinned_space, mapped_space or pageable_space.");
}

}  // namespace ferry::detail
