// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/interop/detail/dlpack_facts.hpp>
#include <ferry/tensor/array_traits.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace ferry {

/// The facts of an array as Python's protocols name them: version 3 of `__cuda_array_interface__` for memory
/// that the device reaches, and of NumPy's `__array_interface__` for host memory. They own nothing.
struct array_interface {
  std::vector<std::int64_t> shape;    ///< the extents
  std::string typestr;                ///< byte order, kind and bytes of an element, "<f4"
  const void* data = nullptr;         ///< the first element; null for an array without elements
  bool read_only = false;             ///< second part of the entry `data`
  std::vector<std::int64_t> strides;  ///< in bytes, one for each extent
  int version = 3;                    ///< of the protocol
};

namespace detail {

/// "<f4". There is no sign for bfloat16, which ml_dtypes writes as two bytes; a struct is a number of bytes.
template <class T>
std::string type_string() {
  const char* order = sizeof(T) == 1 ? "|" : (std::endian::native == std::endian::little ? "<" : ">");
  constexpr int code = dlpack_code<T>();
  if (code == kDLBool) return "|b1";
  constexpr bool is_number = code <= kDLComplex && code != kDLOpaqueHandle;
  constexpr std::string_view kind =
      std::string_view("iufVVc").substr(static_cast<std::size_t>(is_number ? code : int{kDLBfloat}), 1);
  return joined(is_number ? order : "|", kind, sizeof(T));
}

}  // namespace detail

/// The facts of an array for `__cuda_array_interface__` or `__array_interface__`.
///
///   array  anything that verbs take as an array, with any strides; the memory must outlive the use
///
/// Blocks until the work of verbs on the array has ended, so the optional entry `stream` may be left out.
template <class Array>
  requires(ArrayLike<std::remove_reference_t<Array>>)
[[nodiscard]] array_interface to_array_interface(Array&& array) {
  const auto ref = make_ref(array);
  using element = std::remove_pointer_t<decltype(ref.data)>;
  array_interface facts;
  facts.typestr = detail::type_string<std::remove_const_t<element>>();
  facts.data = ref.size() == 0 ? nullptr : static_cast<const void*>(ref.data);
  facts.read_only = std::is_const_v<element>;
  for (std::size_t i = 0; i < ref.rank; ++i) {
    facts.shape.push_back(ref.extents[i]);
    facts.strides.push_back(ref.strides[i] * static_cast<std::int64_t>(sizeof(element)));
  }
  detail::wait_for_tracked(ref.accesses, !facts.read_only);
  return facts;
}

}  // namespace ferry
