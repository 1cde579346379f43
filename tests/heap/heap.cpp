// SPDX-License-Identifier: Apache-2.0
#include "heap/heap.hpp"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::int64_t> allocations{0};
thread_local std::int64_t left = 0;
thread_local bool failed = false;
std::atomic<std::int64_t> left_anywhere{0};
std::atomic<bool> failed_anywhere{false};

void* take(std::size_t bytes, std::size_t alignment) {
  if (left_anywhere.load(std::memory_order_relaxed) > 0 && left_anywhere.fetch_sub(1) == 1) {
    failed_anywhere = true;
    throw std::bad_alloc();
  }
  if (left > 0 && --left == 0) {
    failed = true;
    throw std::bad_alloc();
  }
  allocations.fetch_add(1, std::memory_order_relaxed);
  void* memory = nullptr;
  if (alignment <= alignof(std::max_align_t))
    memory = std::malloc(bytes == 0 ? 1 : bytes);
  else
    memory = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

#if defined(__NVCC__)
#pragma nv_diag_suppress 20011  // nvcc takes operator new for a function of the device as well
#endif

void* operator new(std::size_t bytes) { return take(bytes, 1); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return take(bytes, static_cast<std::size_t>(alignment));
}
// AddressSanitizer has one of its own, which does not call the first.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return take(bytes, 1);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace ferry_test {

std::int64_t heap_allocations() { return allocations.load(std::memory_order_relaxed); }

bool fail_allocation(std::int64_t k) {
  const bool had_failed = failed;
  failed = false;
  left = k;
  return had_failed;
}

bool fail_allocation_anywhere(std::int64_t k) {
  const bool had_failed = failed_anywhere.exchange(false);
  left_anywhere = k;
  return had_failed;
}

}  // namespace ferry_test
