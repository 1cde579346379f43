// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/extend.hpp>
#include <ferry/io/detail/file_elements.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

/// The index of an element type in the table; the table's size if the format has none.
constexpr std::size_t safetensors_index(const dtype& type) {
  for (std::size_t i = 0; i < safetensors_dtypes.size(); ++i) {
    const auto& entry = safetensors_dtypes[i];
    if (entry.kind != dtype_kind::record && entry.kind == type.kind &&
        entry.bits * entry.elements() == type.bytes * 8)
      return i;
  }
  return safetensors_dtypes.size();
}

// The header of a safetensors file: 8 bytes of length, then a JSON object, padded with spaces to a multiple
// of 8 bytes. The bytes of the tensors follow without holes.

/// One tensor as the header describes it.
struct safetensors_entry {
  std::string name;
  std::size_t type = 0;  ///< index in safetensors_dtypes; their number for a type that ferry does not know
  std::string unknown_type;  ///< the file's word for such a type
  std::vector<std::size_t> shape;
  std::uint64_t begin = 0;  ///< from the end of the header
  std::uint64_t end = 0;

  [[nodiscard]] bool has_known_type() const { return type < safetensors_dtypes.size(); }
  [[nodiscard]] std::string_view type_name() const;
};

using safetensors_metadata = std::vector<std::pair<std::string, std::string>>;

struct safetensors_header {
  std::vector<safetensors_entry> entries;  ///< in the order of the file
  safetensors_metadata metadata;
  std::uint64_t bytes = 0;  ///< of the header, with its length
};

/// As the reference implementation.
inline constexpr std::uint64_t longest_safetensors_header = 100'000'000;

/// True if the elements of an entry's shape take the bytes between its offsets. Elements of a type that ferry
/// does not know may take any number of bytes.
bool has_bytes(const safetensors_entry& entry);

/// Reads the JSON text. Returns an empty string, or why it can't be used. `bytes` is the size of what
/// follows the header.
std::string parse_safetensors(std::string_view text, std::uint64_t bytes, safetensors_header& header);

/// Reads and checks the header of a file. Throws io_error.
safetensors_header read_safetensors_header(const file& source);

/// The text of a header, with its length. The entries are in the order of the file.
std::string make_safetensors_header(const std::vector<safetensors_entry>& entries,
                                    const safetensors_metadata& metadata);

}  // namespace ferry::detail
