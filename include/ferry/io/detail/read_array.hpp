// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/element.hpp>
#include <ferry/error.hpp>
#include <ferry/io/detail/dtype.hpp>
#include <ferry/io/detail/dtype_of.hpp>
#include <ferry/io/detail/file.hpp>
#include <ferry/io/detail/stored_array.hpp>
#include <ferry/io/detail/stream_rows.hpp>
#include <ferry/tensor/detail/numeric.hpp>
#include <ferry/tensor/extents.hpp>
#include <ferry/tensor/half.hpp>
#include <ferry/tensor/tensor.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>

namespace ferry::detail {

/// Whether elements of type `wanted` have these bytes in the file. A record of two bytes may hold a bfloat16,
/// and the other way round, because .npy has no name for it.
bool is_stored_as(const dtype& stored, const dtype& wanted);

/// Converts stored elements of type From.
template <class From, class To>
void convert_stored(const std::byte* from, To* to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    From value;
    std::memcpy(&value, from + i * sizeof(From), sizeof(From));
    to[i] = convert<To>(value);
  }
}

template <class To>
using stored_converter = void (*)(const std::byte*, To*, std::size_t);

/// The function that converts elements of a file to T; null where one of the two is no number.
template <class To>
stored_converter<To> converter_of(const dtype& from) {
  stored_converter<To> found = nullptr;
  if constexpr (NumberElement<To>) {
    const auto look = [&]<class... From>(std::type_identity<From>...) {
      ((found = dtype_of<From>() == from ? &convert_stored<From, To> : found), ...);
    };
    look(std::type_identity<float>{}, std::type_identity<double>{}, std::type_identity<half_t>{},
         std::type_identity<bhalf_t>{}, std::type_identity<std::int8_t>{}, std::type_identity<std::int16_t>{},
         std::type_identity<std::int32_t>{}, std::type_identity<std::int64_t>{},
         std::type_identity<std::uint8_t>{}, std::type_identity<std::uint16_t>{},
         std::type_identity<std::uint32_t>{}, std::type_identity<std::uint64_t>{});
  }
  return found;
}

/// Throws invalid_argument for elements of a file that are not `wanted`. `converts`: a conversion was asked
/// for.
[[noreturn]] void refuse_elements(const file& from, const stored_array& stored, const dtype& wanted,
                                  bool converts);

/// Throws invalid_argument where the elements of the file are not T's and are not converted to it.
template <class T, bool Convert>
void require_loadable(const file& from, const stored_array& stored) {
  constexpr dtype wanted = dtype_of<T>();
  if (is_stored_as(stored.elements, wanted)) return;
  if constexpr (Convert)
    if (converter_of<T>(stored.elements) != nullptr) return;
  refuse_elements(from, stored, wanted, Convert);
}

/// The view of a row-major array in the order of a column-major file: the extents from the last to the first.
template <class T, class Space>
array_ref<T, Space> transposed(const array_ref<T, Space>& array) {
  array_ref<T, Space> made = array;
  std::reverse(made.extents.begin(), made.extents.begin() + static_cast<std::ptrdiff_t>(made.rank));
  std::reverse(made.strides.begin(), made.strides.begin() + static_cast<std::ptrdiff_t>(made.rank));
  return made;
}

/// An uninitialised tensor of run-time rank on a device.
template <class T, class Space, class Extents, std::size_t Rank = 1>
tensor<T, Space, Extents> tensor_of(const std::string& label, device where,
                                    std::span<const std::size_t> sizes) {
  if constexpr (Rank < max_rank)
    if (sizes.size() > Rank) return tensor_of<T, Space, Extents, Rank + 1>(label, where, sizes);
  std::array<std::size_t, Rank> all{};
  all.fill(1);  // a single element without extents becomes an array of one
  std::copy(sizes.begin(), sizes.end(), all.begin());
  return tensor<T, Space, Extents>(label, where, all);
}

/// Reads the stored elements [first, first + count), converted. Takes no memory: others are in the array by
/// now.
template <class To>
void read_converted(const file& from, std::uint64_t offset, std::size_t bytes_each,
                    stored_converter<To> converter, To* to, std::size_t count) {
  std::array<std::byte, (std::size_t{1} << 15)> buffer;
  const std::size_t at_once = buffer.size() / bytes_each;
  for (std::size_t done = 0; done < count; done += at_once) {
    const std::size_t some = std::min(at_once, count - done);
    from.read_at(buffer.data(), some * bytes_each, offset + done * bytes_each);
    converter(buffer.data(), to + done, some);
  }
}

/// Bytes of a file as booleans, which have no other values than 0 and 1 in C++. As NumPy, takes every byte
/// but 0 as true.
void make_booleans(void* elements, std::size_t count);

/// Fills an array with the elements of a file.
///
///   Convert  whether numbers of another type are converted; see require_loadable
///   Turns    whether the file may be column-major; false compiles less
///   Strided  whether the array may have strides; false compiles less
template <bool Convert, bool Turns, bool Strided = false, class Exec, class T, class Space>
void read_array(const Exec& exec, const file& from, const stored_array& stored,
                const array_ref<T, Space>& array) {
  const auto converter = [&]() -> stored_converter<T> {
    if constexpr (Convert) {
      if (!is_stored_as(stored.elements, dtype_of<T>())) return converter_of<T>(stored.elements);
    }
    return nullptr;
  }();
  const auto fill = [&](T* to, std::int64_t first, std::int64_t count) {
    const std::size_t each = stored.elements.bytes;
    const std::uint64_t place = stored.offset + static_cast<std::uint64_t>(first) * each;
    if constexpr (Convert)
      if (converter != nullptr)
        return read_converted<T>(from, place, each, converter, to, static_cast<std::size_t>(count));
    from.read_at(to, static_cast<std::size_t>(count) * sizeof(T), place);
    if constexpr (dtype_of<T>().kind == dtype_kind::boolean)
      make_booleans(to, static_cast<std::size_t>(count));
  };
  if constexpr (Turns) {
    const auto turned = transposed(array);
    const bool both_ways = turned.is_contiguous() && array.is_contiguous();
    if (stored.column_major && !both_ways) return stream_in<true>(exec, turned, fill);
  }
  stream_in<Strided>(exec, array, fill);
}

}  // namespace ferry::detail
