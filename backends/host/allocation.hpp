// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "error.hpp"
#include "numa.hpp"

#include <ferry/memory/allocation_progress.hpp>
#include <ferry/memory/detail/backend.hpp>
#include <ferry/memory/detail/joined_thread.hpp>
#include <ferry/memory/spaces.hpp>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <system_error>
#include <vector>

/// Host memory in whole pages, huge ones for large sizes. The other backends use it for page-locked memory.
namespace ferry::host {

/// The smallest page of the system in bytes: 4 KiB on most machines, 64 KiB on some 64-bit Arm machines.
inline std::size_t page_bytes() {
  static const auto bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}
inline constexpr std::size_t huge_page_bytes = std::size_t{1} << 21;

/// Size of the pages of a block of `bytes` bytes. Blocks of at least a huge page are aligned to huge pages.
inline std::size_t mapped_bytes(std::size_t bytes, std::size_t page = page_bytes()) {
  return (bytes + page - 1) / page * page;
}

[[gnu::cold]] inline void* map_pages(const char* space, const std::string& label, std::size_t bytes) {
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

inline void unmap_pages(void* data, std::size_t bytes) noexcept { ::munmap(data, mapped_bytes(bytes)); }

/// Starts a thread for `work`.
struct start_thread {
  template <class Work>
  detail::joined_thread operator()(const Work& work) const {
    return detail::joined_thread(work);
  }
};

/// Touches every page with all threads of the machine, because page faults are the larger part of the time to
/// pin a table. The calling thread takes part and reports progress between its pieces. An exception of its
/// observer is rethrown once the other threads have stopped. Where the system starts no more threads, the
/// existing ones do all the work.
template <class StartThread = start_thread>
void touch_pages(void* data, std::size_t bytes, detail::progress_meter& meter,
                 const StartThread& start = StartThread{}) {
  auto* first = static_cast<volatile char*>(data);
  // About two hundred pieces of whole huge pages.
  const std::size_t piece = (bytes / 200 / huge_page_bytes + 1) * huge_page_bytes;
  const std::size_t page = page_bytes();
  std::atomic<std::size_t> next{0}, done{0};
  const auto touch_one = [&] {
    const std::size_t begin = next.fetch_add(piece, std::memory_order_relaxed);
    if (begin >= bytes) return false;
    const std::size_t end = std::min(bytes, begin + piece);
    for (std::size_t at = begin; at < end; at += page) first[at] = 0;
    done.fetch_add(end - begin, std::memory_order_relaxed);
    return true;
  };
  const std::size_t threads = std::min<std::size_t>(detail::processors_online(), (bytes + piece - 1) / piece);
  const auto touch_all = [&]() noexcept {
    while (touch_one()) {
    }
  };
  std::vector<detail::joined_thread> workers;
  workers.reserve(threads);
  try {
    for (std::size_t t = 1; t < threads; ++t) workers.push_back(start(touch_all));
  } catch (const std::system_error&) {  // a limit on threads is not a lack of memory
  }
  try {
    while (touch_one()) meter.advance(done.load(std::memory_order_relaxed));
  } catch (...) {
    next.store(bytes, std::memory_order_relaxed);
    throw;
  }
}

/// On a host backend all four memory spaces are the same memory.
struct allocation_functions {
  template <class Space>
  static memory_block allocate(Space, std::size_t bytes, const std::string& label, int = -1) {
    numa::placement wanted;  // needs memory of its own, so it comes before the pages, which nobody owns yet
    if constexpr (Space::is_host_accessible && Space::is_device_mapped)
      if (bytes >= huge_page_bytes) wanted = numa::spread(numa::nodes_with_memory());
    memory_block block{map_pages(Space::name.data(), label, bytes), bytes};
    block.placement = numa::advise(block.data, mapped_bytes(bytes), wanted);
    return block;
  }
  template <class Space>
  static void deallocate(Space, const memory_block& block) noexcept {
    unmap_pages(block.data, block.bytes);
  }
  /// Page-locks memory of the user in place: nothing to do, because no device reads it.
  static void lock_pages(void*, std::size_t) {}
  static void unlock_pages(void*) noexcept {}

  template <class Space>
  static std::string describe(Space, const memory_block& block) {
    return block.bytes >= huge_page_bytes
               ? "host memory in huge pages, first touched by its first user" +
                     numa::describe(block.placement)
               : "host memory in pages of " + std::to_string(page_bytes() / 1024) + " KiB";
  }
};

}  // namespace ferry::host
