// SPDX-License-Identifier: Apache-2.0
#include "allocation.hpp"

#include "detail/touch_pages.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <thread>

namespace ferry::host {

std::size_t page_bytes() {
  static const auto bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
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
  touch_pages_by([](const auto& function) { return std::jthread(std::cref(function)); }, data, bytes, meter);
}

}  // namespace ferry::host
