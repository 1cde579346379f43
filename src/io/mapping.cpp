// SPDX-License-Identifier: Apache-2.0
#include <ferry/extend.hpp>
#include <ferry/io/detail/mapping.hpp>

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <string>

namespace ferry::detail {

mapping::mapping(const file& source) : bytes_(static_cast<std::size_t>(source.size())) {
  if (bytes_ == 0) return;
  data_ = ::mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, source.descriptor(), 0);
  if (data_ == MAP_FAILED) {
    data_ = nullptr;
    source.fail_by_errno("map " + std::to_string(bytes_) + " bytes");
  }
}

mapping::~mapping() {
  if (data_ != nullptr) ::munmap(data_, bytes_);
}

const std::byte* mapping::data() const noexcept { return static_cast<const std::byte*>(data_); }

void mapping::read_at_random() const noexcept {
  if (data_ != nullptr) ::madvise(data_, bytes_, MADV_RANDOM);
}

void mapping::read_ahead(std::size_t begin, std::size_t end) const noexcept {
  static const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  begin = begin / page * page;
  if (data_ == nullptr || begin >= end) return;
  ::madvise(static_cast<std::byte*>(data_) + begin, end - begin, MADV_WILLNEED);
}

}  // namespace ferry::detail
