// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/element.hpp>
#include <ferry/error.hpp>
#include <ferry/extend.hpp>
#include <ferry/tensor/array_traits.hpp>
#include <ferry/tensor/tensor.hpp>

#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

/// Requirements of saves and loads on their arrays.
namespace ferry::detail {

template <class Array>
using file_element =
    std::remove_const_t<std::remove_pointer_t<decltype(make_ref(std::declval<const Array&>()).data)>>;
template <class Array>
using file_space = typename array_traits<std::remove_cvref_t<Array>>::memory_space;

/// True for types that are trivially copyable, and whose bytes say nothing: they refer to other memory.
template <class T>
inline constexpr bool refers_elsewhere =
    std::is_pointer_v<T> || std::is_member_pointer_v<T> || std::is_null_pointer_v<T>;
template <class Char, class Traits>
inline constexpr bool refers_elsewhere<std::basic_string_view<Char, Traits>> = true;
template <class T>
inline constexpr bool refers_elsewhere<std::reference_wrapper<T>> = true;

/// Elements whose bytes are their value in another process, too.
template <class T>
concept FileElement = Element<T> && !refers_elsewhere<T>;

/// True if arrays of this type may have strides. Those that may not need no kernels for them.
template <class Array>
inline constexpr bool may_have_strides = !is_sequence_v<Array>;
template <class T, class Space, class Extents>
inline constexpr bool may_have_strides<tensor<T, Space, Extents>> = false;
template <class T, class Space, class Extents>
inline constexpr bool may_have_strides<tensor_slice<T, Space, Extents>> = false;
template <class T, class Space, class Extents>
inline constexpr bool may_have_strides<tensor_view<T, Space, Extents>> = false;

template <class Array>
consteval void require_file_elements() {
  static_assert(
      FileElement<file_element<Array>>,
      "ferry: a file takes elements whose bytes are their value: numbers, or trivially copyable structs of numbers.");
}

/// An empty handle has no extents that a file could name.
void require_extents(const char* verb, const array_note& array);

[[noreturn]] void refuse_captured(const char* verb);
/// "ferry::io::save_npy"
std::string file_verb(const char* verb);

/// Waits for the work enqueued on an instance.
template <class Exec>
void fence_for_file(const Exec& exec, const char* verb) {
  if (execution_backend<Exec>::capturing(exec)) refuse_captured(verb);
  const typename execution_backend<Exec>::device_guard guard(exec);  // Kokkos leaves its own device current
  execution_backend<Exec>::fence(exec, file_verb(verb));
}

/// The sentences for arguments of files in another order, where a compiler would list the candidates.
/// @{
template <class Path>
consteval void refuse_array_before_path() {
  static_assert(
      !std::is_convertible_v<const Path&, std::string>,
      "ferry: the path of a file comes before the array: save_npy(path, array), load_npy(path, array).");
}
template <class Path>
consteval void refuse_load_without_type() {
  static_assert(
      !std::is_convertible_v<const Path&, std::string>,
      "ferry: load_npy needs the type of the elements, and takes a memory space: load_npy<float, ferry::pinned_space>(path), or load_npy(path, array) into an array.");
}
/// @}

}  // namespace ferry::detail
