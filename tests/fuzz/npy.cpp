// SPDX-License-Identifier: Apache-2.0
#include "fuzz.hpp"

#include <ferry/error.hpp>
#include <ferry/io/detail/npy_header.hpp>

#include <cstddef>
#include <cstdint>

/// Any bytes as a .npy file: either an io_error, or an array that lies inside of the file.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::memory_file input(data, size);
  try {
    const auto found = ferry::detail::read_npy_header(input.content());
    std::uint64_t bytes = found.elements.bytes;
    bool is_empty = false;
    for (const std::size_t each : found.sizes()) {
      fuzz::require(each == 0 || ferry::detail::grow_bytes(bytes, each));
      is_empty = is_empty || each == 0;
    }
    fuzz::require(found.rank >= 1 && found.rank <= ferry::max_rank && found.elements.bytes >= 1);
    fuzz::require(found.offset + (is_empty ? 0 : bytes) == size);
    fuzz::require(is_empty == (found.size() == 0) &&
                  (is_empty || found.size() * found.elements.bytes == bytes));
  } catch (const ferry::io_error& refused) {
    fuzz::require(refused.what()[0] != '\0');
  }
  return 0;
}
