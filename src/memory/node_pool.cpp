// SPDX-License-Identifier: Apache-2.0
#include <ferry/memory/detail/node_pool.hpp>

namespace ferry::detail {

node_pool::~node_pool() {
  for (free_node* first : free_)
    while (first != nullptr) ::operator delete(std::exchange(first, first->next));
}

void* node_pool::take(std::size_t bytes) {
  if (bytes > largest) return ::operator new(bytes);
  {
    const std::lock_guard lock(guard_);
    free_node*& first = free_[size_class(bytes)];
    if (first != nullptr) return std::exchange(first, first->next);
  }
  return ::operator new((size_class(bytes) + 1) * granule);
}

void node_pool::give_back(void* node, std::size_t bytes) noexcept {
  if (bytes > largest) return ::operator delete(node);
  const std::lock_guard lock(guard_);
  free_node*& first = free_[size_class(bytes)];
  first = ::new (node) free_node{first};
}

}  // namespace ferry::detail
