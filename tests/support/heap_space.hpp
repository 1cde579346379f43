// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/ferry.hpp>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <string_view>

namespace ferry_test {

/// A memory space of a test's own, so that its books hold nothing but the test's allocations. Its memory is the
/// heap up to a limit.
template <class Tag, bool is_mapped = false>
struct heap_space {
  using ferry_memory_space = heap_space;
  static constexpr std::string_view name = Tag::name;
  static constexpr bool is_host_accessible = true;
  static constexpr bool is_device_mapped = is_mapped;

  static inline std::atomic<std::size_t> limit{~std::size_t{0}};
  static inline std::atomic<std::size_t> usage{0};
  /// While it is set, whoever allocates waits inside.
  static inline std::atomic<bool> gate{false};
  /// While it is set, whoever frees waits inside; `closed` counts them.
  static inline std::atomic<bool> closing{false};
  static inline std::atomic<int> closed{0};
};

}  // namespace ferry_test

template <class Tag, bool is_mapped>
struct ferry::device_backend<ferry_test::heap_space<Tag, is_mapped>> {
  using space = ferry_test::heap_space<Tag, is_mapped>;
  static memory_block allocate(space, std::size_t bytes, const std::string& label) {
    for (std::size_t before = space::usage;;) {
      if (bytes > space::limit - before) throw bad_alloc("no heap left for '" + label + "'");
      if (space::usage.compare_exchange_weak(before, before + bytes)) break;
    }
    space::gate.wait(true);
    return {std::malloc(bytes), bytes, 0, 0};
  }
  static void deallocate(space, const memory_block& block) noexcept {
    if (space::closing) {
      ++space::closed;
      space::closing.wait(true);
      --space::closed;
    }
    std::free(block.data);
    space::usage -= block.bytes;
  }
  static std::string describe(space, const memory_block&) { return "heap memory"; }
};
