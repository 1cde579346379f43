// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "error.hpp"
#include "numa.hpp"

#include <ferry/error.hpp>
#include <ferry/memory/allocation_progress.hpp>
#include <ferry/memory/detail/backend.hpp>
#include <ferry/memory/spaces.hpp>

#include <cstddef>
#include <string>

/// Host memory in whole pages, huge ones for large sizes. The other backends use it for page-locked memory.
namespace ferry::host {

/// The smallest page of the system in bytes: 4 KiB on most machines, 64 KiB on some 64-bit Arm machines.
[[nodiscard]] std::size_t page_bytes();
/// Size of the machine's memory.
[[nodiscard]] std::size_t memory_bytes();
inline constexpr std::size_t huge_page_bytes = std::size_t{1} << 21;

/// Size of the pages of a block of `bytes` bytes. Blocks of at least a huge page are aligned to huge pages.
[[nodiscard]] inline std::size_t mapped_bytes(std::size_t bytes, std::size_t page = page_bytes()) {
  return (bytes + page - 1) / page * page;
}

[[nodiscard]] void* map_pages(const char* space, const std::string& label, std::size_t bytes);
void unmap_pages(void* data, std::size_t bytes) noexcept;

/// Touches every page with all threads of the machine, because page faults are the larger part of the time to
/// pin a table. The calling thread takes part and reports progress between its pieces. An exception of its
/// observer is rethrown once the other threads have stopped. If the system starts no more threads, the
/// existing ones do all the work.
void touch_pages(void* data, std::size_t bytes, detail::progress_meter& meter);

/// On a host backend all four memory spaces are the same memory.
struct allocation_functions {
  template <class Space>
  static memory_block allocate(Space, std::size_t bytes, const std::string& label, int = -1) {
    numa::placement choice;  // needs memory of its own, so it comes before the pages, which nobody owns yet
    if constexpr (Space::is_host_accessible && Space::is_device_mapped)
      if (bytes >= huge_page_bytes) choice = numa::spread(numa::nodes_with_memory());
    memory_block block{map_pages(Space::name.data(), label, bytes), bytes};
    block.placement = numa::advise(block.data, mapped_bytes(bytes), choice);
    return block;
  }
  template <class Space>
  static void deallocate(Space, const memory_block& block) noexcept {
    unmap_pages(block.data, block.bytes);
  }
  /// Page-locks memory of the user in place: nothing to do, because no device reads it.
  static void lock_pages(void*, std::size_t) {}
  static void unlock_pages(void*, std::size_t) noexcept {}

  template <class Space>
  static std::string describe(Space, const memory_block& block) {
    return block.bytes >= huge_page_bytes
               ? detail::joined("host memory in huge pages, first touched by its first user",
                                numa::describe(block.placement))
               : detail::joined("host memory in pages of ", page_bytes() / 1024, " KiB");
  }
};

}  // namespace ferry::host
