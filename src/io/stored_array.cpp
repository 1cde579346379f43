// SPDX-License-Identifier: Apache-2.0
#include <ferry/io/detail/stored_array.hpp>

#include <ferry/tensor/extents.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace ferry::detail {

std::span<const std::size_t> stored_array::sizes() const {
  return std::span<const std::size_t>(extents).first(rank);
}

std::size_t stored_array::size() const {
  std::size_t product = 1;
  for (const std::size_t size : sizes()) product *= size;
  return product;
}

bool grow_bytes(std::uint64_t& bytes, std::uint64_t extent) {
  if (extent == 0) return true;
  if (bytes > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) / extent) return false;
  bytes *= extent;
  return true;
}

}  // namespace ferry::detail
