// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/io/detail/dtype.hpp>
#include <ferry/tensor/extents.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace ferry::detail {

/// The place of an array in a file, as its header says and the file's size allows.
struct stored_array {
  std::string name;  ///< in messages; empty if the file has one array only
  dtype elements;
  std::string type_text;  ///< the file's own name of the element type
  std::size_t rank = 0;
  std::array<std::size_t, max_rank> extents{};
  bool column_major = false;
  std::uint64_t offset = 0;  ///< of the first byte

  [[nodiscard]] std::span<const std::size_t> sizes() const;
  [[nodiscard]] std::size_t size() const;
};

/// Multiplies `bytes` by an extent. Returns false if a later product of extents other than zero does not
/// fit the address space.
bool grow_bytes(std::uint64_t& bytes, std::uint64_t extent);

}  // namespace ferry::detail
