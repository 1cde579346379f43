// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/extend.hpp>
#include <ferry/io/detail/safetensors_dtype.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// The header of a safetensors file: 8 bytes of length, then a JSON object, padded with spaces to a multiple
/// of 8 bytes. The bytes of the tensors follow without holes.
namespace ferry::detail {

/// One tensor as the header describes it.
struct safetensors_entry {
  std::string name;
  std::size_t type = 0;  ///< place in safetensors_dtypes; their number for a type that ferry does not know
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
