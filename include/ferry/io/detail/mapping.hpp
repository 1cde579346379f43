// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/extend.hpp>
#include <ferry/io/detail/library.hpp>

#include <cstddef>

namespace ferry::detail {

/// The pages of a whole file, read-only. They are brought to memory when they are read, and are the page
/// cache's: the system may drop them at any time. The file may be closed and removed meanwhile.
class mapping {
 public:
  explicit mapping(const file& source);
  mapping(const mapping&) = delete;
  mapping& operator=(const mapping&) = delete;
  ~mapping();

  [[nodiscard]] const std::byte* data() const noexcept;
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

  /// The pages are read at random places: the system reads no others with them.
  void read_at_random() const noexcept;
  /// Starts to read bytes [begin, end) into memory. A hint.
  void read_ahead(std::size_t begin, std::size_t end) const noexcept;

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace ferry::detail
