// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/io/detail/dtype.hpp>

#include <array>
#include <cstddef>
#include <string_view>

namespace ferry::detail {

/// An element type of the safetensors format. Types that no element of ferry's has are foreign or records.
struct safetensors_dtype {
  std::string_view name;
  std::size_t bits;
  dtype_kind kind;

  /// How many of its elements are one of ferry's: two numbers of 4 bits are a pair.
  [[nodiscard]] constexpr std::size_t elements() const { return kind == dtype_kind::e2m1 ? 2 : 1; }
};

/// In the order of the reference implementation, which is that of alignment. It writes tensors from the last
/// type to the first.
inline constexpr std::array<safetensors_dtype, 22> safetensors_dtypes{{
    {"BOOL", 8, dtype_kind::boolean},          {"F4", 4, dtype_kind::e2m1},
    {"F6_E2M3", 6, dtype_kind::record},        {"F6_E3M2", 6, dtype_kind::record},
    {"U8", 8, dtype_kind::unsigned_integer},   {"I8", 8, dtype_kind::integer},
    {"F8_E5M2", 8, dtype_kind::e5m2},          {"F8_E4M3", 8, dtype_kind::e4m3},
    {"F8_E8M0", 8, dtype_kind::e8m0},          {"F8_E4M3FNUZ", 8, dtype_kind::foreign},
    {"F8_E5M2FNUZ", 8, dtype_kind::foreign},   {"I16", 16, dtype_kind::integer},
    {"U16", 16, dtype_kind::unsigned_integer}, {"F16", 16, dtype_kind::real},
    {"BF16", 16, dtype_kind::brain},           {"I32", 32, dtype_kind::integer},
    {"U32", 32, dtype_kind::unsigned_integer}, {"F32", 32, dtype_kind::real},
    {"C64", 64, dtype_kind::complex},          {"F64", 64, dtype_kind::real},
    {"I64", 64, dtype_kind::integer},          {"U64", 64, dtype_kind::unsigned_integer},
}};

/// The place of an element type in the table; the table's size if the format has none.
constexpr std::size_t safetensors_place(const dtype& type) {
  for (std::size_t i = 0; i < safetensors_dtypes.size(); ++i) {
    const auto& entry = safetensors_dtypes[i];
    if (entry.kind != dtype_kind::record && entry.kind == type.kind &&
        entry.bits * entry.elements() == type.bytes * 8)
      return i;
  }
  return safetensors_dtypes.size();
}

}  // namespace ferry::detail
