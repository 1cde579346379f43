// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/io/detail/dtype.hpp>
#include <ferry/tensor/extents.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>

namespace ferry::detail {

/// Where an array lies in a file, as its header says and the file's size allows.
struct stored_array {
  std::string name;  ///< in messages; empty where the file has one array only
  dtype elements;
  std::string type_text;  ///< the file's own name of the element type
  std::size_t rank = 0;
  std::array<std::size_t, max_rank> extents{};
  bool column_major = false;
  std::uint64_t offset = 0;  ///< of the first byte

  template <class...>
  [[nodiscard]] std::span<const std::size_t> sizes() const {
    return std::span<const std::size_t>(extents).first(rank);
  }
  template <class...>
  [[nodiscard]] std::size_t size() const {
    std::size_t product = 1;
    for (const std::size_t each : sizes()) product *= each;
    return product;
  }
};

/// Multiplies `bytes` by an extent. Returns false where a later product of extents other than zero does not
/// fit the address space.
template <class...>
bool grow_bytes(std::uint64_t& bytes, std::uint64_t extent) {
  if (extent == 0) return true;
  if (bytes > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) / extent) return false;
  bytes *= extent;
  return true;
}

}  // namespace ferry::detail
