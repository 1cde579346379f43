// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/element.hpp>
#include <ferry/extend.hpp>
#include <ferry/io/convert_dtype.hpp>
#include <ferry/io/detail/file_elements.hpp>
#include <ferry/io/detail/stream_rows.hpp>
#include <ferry/tensor/array_traits.hpp>
#include <ferry/tensor/fp8.hpp>
#include <ferry/tensor/half.hpp>
#include <ferry/tensor/tensor.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

/// The header of a .npy file: 6 bytes of magic, 2 of version, 2 (version 1) or 4 bytes of length, then a
/// Python dictionary, {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }, padded to 64 bytes.
namespace ferry::detail {

/// Reserves room for a row-major array and writes its header. Returns the header's size.
std::uint64_t begin_npy(const file& target, const dtype& type, const untyped_array& array);

/// Reads and checks the header of a file: the file's size must be what the header says. Throws io_error.
stored_array read_npy_header(const file& source);

/// True if elements of type `expected` have these bytes in the file. A record of two bytes may hold a
/// bfloat16, and a record of one byte a number of 8 or fewer bits, and the other way round, because .npy has
/// no name for these.
bool is_stored_as(const dtype& stored, const dtype& expected);

using stored_converter = void (*)(const std::byte* source, void* target, std::size_t count);

/// The function that converts elements of a file to T; null if one of the two is no number.
template <class To>
stored_converter converter_of(const dtype& source) {
  stored_converter converter = nullptr;
  if constexpr (ValueElement<To>) {
    const auto look = [&]<class... From>(std::type_identity<From>...) {
      ((converter = dtype_of<From>() == source ? &convert_stored<From, To> : converter), ...);
    };
    look(std::type_identity<float>{}, std::type_identity<double>{}, std::type_identity<half_t>{},
         std::type_identity<bhalf_t>{}, std::type_identity<std::int8_t>{}, std::type_identity<std::int16_t>{},
         std::type_identity<std::int32_t>{}, std::type_identity<std::int64_t>{},
         std::type_identity<std::uint8_t>{}, std::type_identity<std::uint16_t>{},
         std::type_identity<std::uint32_t>{}, std::type_identity<std::uint64_t>{},
         std::type_identity<fp8_e4m3_t>{}, std::type_identity<fp8_e5m2_t>{}, std::type_identity<ue8m0_t>{});
  }
  return converter;
}

/// Throws invalid_argument for elements of a file that are not `expected`. `converts`: a conversion was asked
/// for.
[[noreturn]] void refuse_elements(const file& source, const stored_array& stored, const dtype& expected,
                                  bool converts);

/// Throws invalid_argument if the elements of the file are not T's and are not converted to it.
template <class T, bool Convert>
void require_loadable(const file& source, const stored_array& stored) {
  constexpr dtype expected = dtype_of<T>();
  if (is_stored_as(stored.elements, expected)) return;
  if constexpr (Convert)
    if (converter_of<T>(stored.elements) != nullptr) return;
  refuse_elements(source, stored, expected, Convert);
}

/// The array in the order of a column-major file: the extents from the last to the first.
array_shape transposed(const array_shape& array);
/// True if elements of a file have to be read in the order of the transposed array.
bool needs_transposed(const stored_array& stored, const array_shape& array);

/// An uninitialised tensor of run-time rank on a device. A single element without extents becomes an array of
/// one.
template <class T, class Space, class Extents>
tensor<T, Space, Extents> tensor_of(const std::string& label, device target,
                                    std::span<const std::size_t> sizes) {
  static constexpr std::array<std::size_t, 1> single{1};
  return tensor<T, Space, Extents>(label, target,
                                   sizes.empty() ? std::span<const std::size_t>(single) : sizes);
}

/// Reads pieces of an array of a file.
struct stored_reader {
  const file& source;
  const stored_array& stored;
  std::size_t element_bytes;   ///< of the array
  bool booleans;               ///< which have no other values than 0 and 1 in C++
  stored_converter converter;  ///< null: the bytes are the elements

  void operator()(void* elements, std::int64_t first, std::int64_t count) const;
};

/// Fills an array with the elements of a file.
///
///   Convert  whether numbers of another type are converted; see require_loadable
///   Turns    whether the file may be column-major; false compiles less
///   Strided  whether the array may have strides; false compiles less
template <bool Convert, bool Turns, bool Strided = false, class Exec, class T, class Space>
void read_array(const Exec& exec, const file& source, const stored_array& stored,
                const array_ref<T, Space>& array) {
  stored_reader fill{source, stored, sizeof(T), dtype_of<T>().kind == dtype_kind::boolean, nullptr};
  if constexpr (Convert)
    if (!is_stored_as(stored.elements, dtype_of<T>())) fill.converter = converter_of<T>(stored.elements);
  if constexpr (Turns)
    if (needs_transposed(stored, array))
      return stream<true>(exec, array_ref<T, Space>{transposed(array), array.data}, fill);
  stream<Strided>(exec, array, fill);
}

/// Throws invalid_argument unless the array has the extents of the file's.
void require_same_extents(const file& source, const stored_array& stored, const array_note& array);

/// Fills an array that exists with an array of a file, which has the same extents. Elements, extents and the
/// instance are checked before anything is changed.
template <bool Turns, class... Convert, class Exec, class Array>
void fill_array(const Exec& exec, const file& source, const stored_array& stored, Array& array) {
  static_assert((std::is_same_v<Convert, io::convert_dtype> && ...) && sizeof...(Convert) <= 1,
                "ferry: after the array, a load takes nothing but ferry::io::convert_dtype{}.");
  require_file_elements<Array>();
  require_mutable<Array>();
  require_reach<Exec, Array>();
  constexpr bool converts = sizeof...(Convert) == 1;
  const auto target = make_ref(array);
  using element = std::remove_reference_t<decltype(*target.data)>;
  require_loadable<element, converts>(source, stored);
  require_same_extents(source, stored, target.note());
  fence_for_file(exec, source.verb().c_str());
  read_array<converts, Turns, may_have_strides<std::remove_cv_t<Array>>>(exec, source, stored, target);
}

}  // namespace ferry::detail
