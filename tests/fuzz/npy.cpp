// SPDX-License-Identifier: Apache-2.0
#include "fuzz.hpp"

#include <ferry/error.hpp>
#include <ferry/io/detail/read_array.hpp>

#include <cstddef>
#include <cstdint>

/// Any bytes as a .npy file: either an io_error, or an array that lies inside of the file.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::memory_file input(data, size);
  try {
    const auto result = ferry::detail::read_npy_header(input.content());
    std::uint64_t bytes = result.elements.bytes;
    bool is_empty = false;
    for (const std::size_t extent : result.sizes()) {
      fuzz::require(extent == 0 || ferry::detail::grow_bytes(bytes, extent));
      is_empty = is_empty || extent == 0;
    }
    fuzz::require(result.rank >= 1 && result.rank <= ferry::max_rank && result.elements.bytes >= 1);
    fuzz::require(result.offset + (is_empty ? 0 : bytes) == size);
    fuzz::require(is_empty == (result.size() == 0) &&
                  (is_empty || result.size() * result.elements.bytes == bytes));
  } catch (const ferry::io_error& refused) {
    fuzz::require(refused.what()[0] != '\0');
  }
  return 0;
}
