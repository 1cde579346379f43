// SPDX-License-Identifier: Apache-2.0
#include <ferry/io/detail/mapping.hpp>

#include <ferry/extend.hpp>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ferry::detail {

const char the_library_is_not_linked_so_link_the_target_ferry_io_or_compile_src_ferry_io_cpp = 1;

mapping::mapping(const file& source) : bytes_(static_cast<std::size_t>(source.size())) {
  if (bytes_ == 0) return;
  data_ = ::mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, source.descriptor(), 0);
  if (data_ == MAP_FAILED) {
    data_ = nullptr;
    source.fail_by_errno(joined("map ", bytes_, " bytes"));
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

bool is_read_at_random(std::size_t file_bytes, std::size_t row_bytes) {
  constexpr std::size_t with_each_page = std::size_t{128} << 10;
  const auto pages = static_cast<std::size_t>(std::max(0L, ::sysconf(_SC_PHYS_PAGES)));
  const auto page = static_cast<std::size_t>(std::max(1L, ::sysconf(_SC_PAGESIZE)));
  return row_bytes < with_each_page && file_bytes / page > pages / 2;
}

void read_rows_ahead(const mapping& pages, std::size_t offset, std::size_t row_bytes,
                     std::vector<std::uint64_t> rows) {
  std::sort(rows.begin(), rows.end());
  // Rows of one page, and of pages next to each other, are one range.
  constexpr std::size_t page = 4096;
  struct range {
    std::size_t begin, end;
  };
  std::vector<range> ranges;
  for (const std::uint64_t row : rows) {
    const std::size_t begin = (offset + row * row_bytes) / page * page;
    const std::size_t end = (offset + (row + 1) * row_bytes + page - 1) / page * page;
    if (!ranges.empty() && begin <= ranges.back().end)
      ranges.back().end = end;
    else
      ranges.push_back({begin, end});
  }
  parallel(static_cast<std::int64_t>(ranges.size()), 256, [&](std::int64_t first, std::int64_t count) {
    for (std::int64_t i = first; i < first + count; ++i) {
      const range& span = ranges[static_cast<std::size_t>(i)];
      pages.read_ahead(span.begin, std::min(span.end, pages.bytes()));
    }
  });
}

}  // namespace ferry::detail
