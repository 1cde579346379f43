// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>

#include <cstddef>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

namespace ferry::detail {

/// Memory for the small objects of a verb, such as the control blocks of its leases. Returned memory is kept
/// for the next verb, so a steady loop does not use the heap. Thread-safe.
class node_pool {
 public:
  node_pool() = default;
  node_pool(const node_pool&) = delete;
  node_pool& operator=(const node_pool&) = delete;
  ~node_pool();

  [[nodiscard]] void* take(std::size_t bytes);

  void give_back(void* node, std::size_t bytes) noexcept;

 private:
  struct free_node {
    free_node* next;
  };
  static constexpr std::size_t granule = 64;
  static constexpr std::size_t classes = 16;
  static constexpr std::size_t largest = granule * classes;

  static std::size_t size_class(std::size_t bytes) noexcept { return bytes == 0 ? 0 : (bytes - 1) / granule; }

  std::mutex guard_;
  free_node* free_[classes] = {};
};

/// A standard allocator that shares a node_pool.
template <class T>
class node_allocator {
  static_assert(alignof(T) <= alignof(std::max_align_t));

 public:
  using value_type = T;

  explicit node_allocator(std::shared_ptr<node_pool> pool) noexcept : pool_(std::move(pool)) {}
  template <class Other>
  node_allocator(const node_allocator<Other>& source) noexcept : pool_(source.pool()) {}

  [[nodiscard]] T* allocate(std::size_t count) { return static_cast<T*>(pool_->take(count * sizeof(T))); }
  void deallocate(T* node, std::size_t count) noexcept { pool_->give_back(node, count * sizeof(T)); }

  [[nodiscard]] const std::shared_ptr<node_pool>& pool() const noexcept { return pool_; }
  template <class Other>
  [[nodiscard]] bool operator==(const node_allocator<Other>& source) const noexcept {
    return pool_ == source.pool();
  }

 private:
  std::shared_ptr<node_pool> pool_;
};

}  // namespace ferry::detail
