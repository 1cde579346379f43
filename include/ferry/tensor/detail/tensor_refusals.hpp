// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/element.hpp>
#include <ferry/concepts/execution_space.hpp>
#include <ferry/concepts/memory_space.hpp>

#include <string_view>
#include <type_traits>

/// The sentences for arguments that constructors can't take, where a compiler would list the constructors.
namespace ferry::detail {

/// True if the arguments of a tensor lack a label or extents, or have extents that are no integers.
/// `FixedExtents`: the type has all of them.
template <bool FixedExtents, class First, class... Rest>
consteval bool is_refused_tensor() {
  if constexpr (std::is_arithmetic_v<First> || ExecutionSpace<First>)
    return true;
  else if constexpr (std::is_convertible_v<const First&, std::string_view>)
    return (sizeof...(Rest) == 0 && !FixedExtents) || (std::is_floating_point_v<Rest> || ...);
  else
    return false;
}

/// `Arguments` are those of the constructor.
template <class First, class... Arguments>
consteval void refuse_tensor() {
  static_assert(
      !ExecutionSpace<First>,
      "ferry: a tensor takes no execution space instance, verbs do; its arguments are its label and extents: tensor<T, Space>(\"weights\", rows, width).");
  static_assert(
      ExecutionSpace<First> || !std::is_arithmetic_v<First>,
      "ferry: the first argument of a tensor is its label, which messages and statistics name: tensor<T, Space>(\"weights\", rows, width).");
  if constexpr (!ExecutionSpace<First> && !std::is_arithmetic_v<First>) {
    static_assert(
        sizeof...(Arguments) > 0,
        "ferry: a tensor needs its extents after the label, rows first: tensor<T, Space>(\"weights\", rows, width).");
    static_assert(sizeof...(Arguments) == 0 || std::is_arithmetic_v<First>,
                  "ferry: the extents of a tensor are integers: tensor<T, Space>(\"weights\", rows, width).");
  }
}

template <class Tensor>
consteval void refuse_tensor_copy() {
  static_assert(
      sizeof(Tensor) == 0,
      "ferry: a tensor is not copied by accident: clone(exec, table).get() is a deep copy, std::move hands the memory on, a function takes it by reference, and a kernel captures a view that was made before it, auto rows = table.view().");
}

/// True if the arguments of a quantized_tensor are not its label, its rows and its width.
template <class First, class... Rest>
consteval bool is_refused_quantized() {
  if constexpr (std::is_convertible_v<const First&, std::string_view>)
    return sizeof...(Rest) != 2 || !(std::is_integral_v<Rest> && ...);
  else
    return std::is_arithmetic_v<First> || ExecutionSpace<First>;
}
template <class First>
consteval void refuse_quantized() {
  static_assert(
      sizeof(First) == 0,
      "ferry: the arguments of a quantized_tensor are its label, its rows and its width in numbers: quantized_tensor<quantization::mxfp8, Space>(\"codes\", rows, width).");
}

/// Refuses the template arguments of a tensor.
template <class T, class Space>
consteval bool refuse_tensor_types() {
  constexpr bool element = Element<T>, space = MemorySpace<Space>;
  static_assert(
      element,
      "ferry: the elements of a tensor must be trivially copyable, because verbs copy their bytes: numbers, or structs of numbers. A std::string or a std::vector owns memory.");
  static_assert(
      space || !element,
      "ferry: the second template argument of a tensor is one of ferry's memory spaces: device_space, pinned_space, mapped_space or pageable_space.");
  return true;
}

/// An argument that a refused call lacks. Never defined.
template <class T>
T absent_argument();

/// `Rows` is a template parameter of the caller, so that the sentence waits for its instantiation.
template <class First, class Rows>
consteval void refuse_sharded_table() {
  static_assert(
      sizeof(First) + sizeof(Rows) == 0,
      "ferry: the arguments of a sharded_table are its label, its communicator and its extents: sharded_table<T, Space>(\"weights\", comm, rows, width).");
}

}  // namespace ferry::detail
