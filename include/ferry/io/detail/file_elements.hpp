// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/element.hpp>
#include <ferry/extend.hpp>
#include <ferry/io/detail/library.hpp>
#include <ferry/tensor/array_traits.hpp>
#include <ferry/tensor/extents.hpp>
#include <ferry/tensor/fp4.hpp>
#include <ferry/tensor/fp8.hpp>
#include <ferry/tensor/half.hpp>
#include <ferry/tensor/tensor.hpp>

#include <Kokkos_Complex.hpp>

#include <array>
#include <bit>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace ferry::detail {

static_assert(std::endian::native == std::endian::little,
              "ferry: files are written as the memory is, and their formats are little-endian.");

/// The meaning of the bytes of an element. An e2m1 is a pair of 4-bit numbers; `foreign` are 8-bit numbers in
/// a format that ferry does not have.
enum class dtype_kind : unsigned char {
  boolean,
  integer,
  unsigned_integer,
  real,
  brain,
  complex,
  e4m3,
  e5m2,
  e8m0,
  e2m1,
  foreign,
  record
};

/// The type of the elements of an array in a file.
struct dtype {
  dtype_kind kind = dtype_kind::record;
  std::size_t bytes = 0;

  bool operator==(const dtype&) const = default;

  /// NumPy's name: "float32", "bfloat16", "float8_e4m3fn"; "records of 12 bytes" for structs.
  [[nodiscard]] std::string name() const;
};

template <class T>
inline constexpr bool is_complex = false;
template <class T>
inline constexpr bool is_complex<std::complex<T>> = true;
template <class T>
inline constexpr bool is_complex<Kokkos::complex<T>> = true;

/// The type of ferry's elements. Enumerations, std::byte among them, are their integers; structs are records.
template <class T>
consteval dtype dtype_of() {
  if constexpr (std::is_const_v<T>)
    return dtype_of<std::remove_const_t<T>>();
  else if constexpr (std::is_enum_v<T>)
    return dtype_of<std::underlying_type_t<T>>();
  else if constexpr (std::is_same_v<T, bool>)
    return {dtype_kind::boolean, sizeof(T)};
  else if constexpr (std::is_integral_v<T>)
    return {std::is_signed_v<T> ? dtype_kind::integer : dtype_kind::unsigned_integer, sizeof(T)};
  else if constexpr (std::is_floating_point_v<T> || std::is_same_v<T, half_t>)
    return {dtype_kind::real, sizeof(T)};
  else if constexpr (std::is_same_v<T, bhalf_t>)
    return {dtype_kind::brain, sizeof(T)};
  else if constexpr (std::is_same_v<T, fp8_e4m3_t>)
    return {dtype_kind::e4m3, sizeof(T)};
  else if constexpr (std::is_same_v<T, fp8_e5m2_t>)
    return {dtype_kind::e5m2, sizeof(T)};
  else if constexpr (std::is_same_v<T, ue8m0_t>)
    return {dtype_kind::e8m0, sizeof(T)};
  else if constexpr (std::is_same_v<T, fp4_e2m1_pair_t>)
    return {dtype_kind::e2m1, sizeof(T)};
  else if constexpr (is_complex<T>)
    return {dtype_kind::complex, sizeof(T)};
  else
    return {dtype_kind::record, sizeof(T)};
}

/// Converts stored elements of type From.
template <class From, class To>
void convert_stored(const std::byte* source, void* target, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    From value;
    std::memcpy(&value, source + i * sizeof(From), sizeof(From));
    static_cast<To*>(target)[i] = convert<To>(value);
  }
}

/// The layout of an array in a file, as its header says and the file's size allows.
struct stored_array {
  std::string name;  ///< in messages; empty if the file has one array only
  dtype elements;
  std::string type_text;  ///< the file's own name of the element type
  std::size_t rank = 0;
  std::array<std::size_t, max_rank> extents{};
  bool column_major = false;
  std::uint64_t offset = 0;  ///< of the first byte

  [[nodiscard]] std::span<const std::size_t> sizes() const { return std::span(extents).first(rank); }
  [[nodiscard]] std::size_t size() const {
    return std::accumulate(extents.begin(), extents.begin() + rank, std::size_t{1}, std::multiplies<>());
  }
  /// Rows [begin, end).
  [[nodiscard]] stored_array rows(std::size_t begin, std::size_t end) const {
    stored_array part = *this;
    part.offset += begin * elements.bytes * (extents[0] == 0 ? 0 : size() / extents[0]);
    part.extents[0] = end - begin;
    return part;
  }
};

/// Multiplies `bytes` by an extent. Returns false if a later product of extents other than zero does not
/// fit the address space.
inline bool grow_bytes(std::uint64_t& bytes, std::uint64_t extent) {
  if (extent == 0) return true;
  if (bytes > std::uint64_t{INT64_MAX} / extent) return false;
  bytes *= extent;
  return true;
}

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

/// "ferry::io::save_npy". Throws invalid_argument for an instance that is being captured.
std::string file_verb(const char* verb, bool is_captured);

/// Waits for the work enqueued on an instance.
template <class Exec>
void fence_for_file(const Exec& exec, const char* verb) {
  const std::string name = file_verb(verb, execution_backend<Exec>::capturing(exec));
  const typename execution_backend<Exec>::device_guard guard(exec);  // Kokkos leaves its own device current
  execution_backend<Exec>::fence(exec, name);
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
