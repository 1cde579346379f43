// SPDX-License-Identifier: Apache-2.0
#include "crc32c.hpp"

#include <isa-l/crc.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace ferry::detail {

std::uint32_t crc32c(const void* data, std::size_t bytes, std::uint32_t before) {
  constexpr std::size_t most_at_once = std::size_t{1} << 30;          // ISA-L counts bytes by an int
  auto* next = static_cast<unsigned char*>(const_cast<void*>(data));  // which it only reads
  std::uint32_t rest = ~before;
  while (bytes != 0) {
    const std::size_t count = std::min(bytes, most_at_once);
    rest = crc32_iscsi(next, static_cast<int>(count), rest);
    next += count;
    bytes -= count;
  }
  return ~rest;
}

}  // namespace ferry::detail
