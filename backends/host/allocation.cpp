// SPDX-License-Identifier: Apache-2.0
#include "allocation.hpp"

#include <ferry/runtime/detail/parallel.hpp>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <thread>

namespace ferry::host {

std::size_t page_bytes() {
  static const auto bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

std::size_t memory_bytes() {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  return pages < 0 ? 0 : static_cast<std::size_t>(pages) * page_bytes();
}

void* map_pages(const char* space, const std::string& label, std::size_t bytes) {
  const std::size_t size = mapped_bytes(bytes);
  const bool huge = size >= huge_page_bytes;
  const std::size_t slack = huge ? huge_page_bytes : 0;
  if (size < bytes || size + slack < size) throw_bad_alloc(space, label, bytes, "the size overflows");
  // No MAP_NORESERVE: the kernel should refuse too large a size, instead of killing the process at first
  // touch.
  void* raw = ::mmap(nullptr, size + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) throw_bad_alloc(space, label, bytes, std::string("mmap: ") + std::strerror(errno));
  if (!huge) return raw;
  // Trim to the aligned part, so that exactly the requested pages remain.
  auto* begin = static_cast<char*>(raw);
  const auto address = reinterpret_cast<std::uintptr_t>(raw);
  const std::size_t up = (huge_page_bytes - address % huge_page_bytes) % huge_page_bytes;
  if (up != 0) ::munmap(begin, up);
  if (slack != up) ::munmap(begin + up + size, slack - up);
  ::madvise(begin + up, size,
            MADV_HUGEPAGE);  // advice only: without huge pages the memory is slower
  return begin + up;
}

void unmap_pages(void* data, std::size_t bytes) noexcept { ::munmap(data, mapped_bytes(bytes)); }

void touch_pages(void* data, std::size_t bytes, detail::progress_meter& meter) {
  auto* const pages = static_cast<volatile char*>(data);
  // About two hundred pieces of whole huge pages.
  const std::size_t piece = (bytes / 200 / huge_page_bytes + 1) * huge_page_bytes;
  const std::size_t page = page_bytes();
  const detail::thread_choice threads{static_cast<int>(std::max(1u, std::thread::hardware_concurrency())),
                                      detail::helper_threads::beside_caller};
  std::atomic<std::int64_t> touched{0};
  detail::parallel(static_cast<std::int64_t>(bytes), static_cast<std::int64_t>(piece), threads,
                   [&](detail::front_queue& pieces, int thread) {
                     for (std::int64_t first = 0, count = 0; pieces.take(first, count);) {
                       for (std::int64_t place = first; place < first + count;
                            place += static_cast<std::int64_t>(page))
                         pages[place] = 0;
                       touched.fetch_add(count, std::memory_order_relaxed);
                       if (thread == 0)
                         meter.advance(static_cast<std::size_t>(touched.load(std::memory_order_relaxed)));
                     }
                   });
}

}  // namespace ferry::host
