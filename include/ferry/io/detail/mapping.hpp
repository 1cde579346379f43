// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/io/detail/file.hpp>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

namespace ferry::detail {

/// The pages of a whole file, read-only. They are brought to memory when they are read, and are the page
/// cache's: the system may drop them at any time. The file may be closed and removed meanwhile.
template <class Dependent>
class basic_mapping {
 public:
  explicit basic_mapping(const file& of) : bytes_(static_cast<std::size_t>(of.size())) {
    if (bytes_ == 0) return;
    data_ = ::mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, of.descriptor(), 0);
    if (data_ == MAP_FAILED) {
      data_ = nullptr;
      of.fail_by_errno("map " + std::to_string(bytes_) + " bytes");
    }
  }
  basic_mapping(const basic_mapping&) = delete;
  basic_mapping& operator=(const basic_mapping&) = delete;
  ~basic_mapping() {
    if (data_ != nullptr) ::munmap(data_, bytes_);
  }

  [[nodiscard]] const std::byte* data() const noexcept { return static_cast<const std::byte*>(data_); }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

  /// The pages are read at random places: the system reads no others with them.
  void read_at_random() const noexcept {
    if (data_ != nullptr) ::madvise(data_, bytes_, MADV_RANDOM);
  }
  /// Starts to read bytes [begin, end) into memory. A hint.
  void read_ahead(std::size_t begin, std::size_t end) const noexcept {
    static const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    begin = begin / page * page;
    if (data_ == nullptr || begin >= end) return;
    ::madvise(static_cast<std::byte*>(data_) + begin, end - begin, MADV_WILLNEED);
  }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};
using mapping = basic_mapping<void>;

}  // namespace ferry::detail
