// SPDX-License-Identifier: Apache-2.0
#include "block_cache.hpp"

#include "../../backends/enabled.hpp"
#include "tensor_pool.hpp"

#include <ferry/memory/detail/process_wide.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace ferry::detail {

block_shelf::block block_shelf::take(std::size_t smallest, std::size_t largest, const instance_id* who,
                                     std::size_t limit, int device) {
  return idle_.take([&](const std::vector<block>& idle) {
    const auto is_smaller = [](const block& candidate, std::size_t bytes) {
      return candidate->bytes < bytes;
    };
    const auto is_larger = [](std::size_t bytes, const block& candidate) { return bytes < candidate->bytes; };
    const auto first = std::lower_bound(idle.begin(), idle.end(), smallest, is_smaller);
    const auto last = std::upper_bound(first, idle.end(), largest, is_larger);
    auto choice = last;
    if (who != nullptr)
      choice = std::find_if(first, last, [&](const block& candidate) { return candidate->is_used_by(*who); });
    if (choice == last)
      choice = std::find_if(first, last, [&](const block& candidate) {
        return candidate->device == device && candidate->is_free_for(who);
      });
    if (choice == last) choice = static_cast<std::size_t>(last - first) >= limit ? first : idle.end();
    return static_cast<std::size_t>(choice - idle.begin());
  });
}

void block_shelf::put(block returned) noexcept {
  returned->number = returns_.fetch_add(1, std::memory_order_relaxed);
  if (!idle_.put(std::move(returned)))
    returned->wait_ignoring_errors();
  else if (max_bytes() != ~std::size_t{0})
    free_above_limit();
}

void block_shelf::limit(std::size_t count, std::size_t bytes) noexcept {
  max_blocks_.store(count, std::memory_order_relaxed);
  max_bytes_.store(bytes, std::memory_order_relaxed);
  free_above_limit();
}

void block_shelf::free_above_limit() noexcept {
  const std::size_t count = max_blocks_.load(std::memory_order_relaxed), bytes = max_bytes();
  for (;;) {
    const block freed = idle_.take([&](const std::vector<block>& idle) {
      std::size_t bytes_idle = 0;
      for (const block& candidate : idle) bytes_idle += candidate->bytes;
      std::size_t oldest = idle.size();
      if (idle.size() <= count && bytes_idle <= bytes) return oldest;
      for (std::size_t i = 0; i < idle.size(); ++i)
        if ((oldest == idle.size() || idle[i]->number < idle[oldest]->number) &&
            idle[i]->is_free_for(nullptr))
          oldest = i;
      return oldest;
    });
    if (freed == nullptr) return;
    idle_.forget(1);
  }
}

void block_shelf::close() noexcept {
  for (const auto& last : idle_.close()) last->wait_ignoring_errors();
}

std::size_t block_shelf::idle_bytes() const {
  return idle_.visit([](const std::vector<block>& idle) {
    std::size_t sum = 0;
    for (const auto& candidate : idle) sum += candidate->bytes;
    return sum;
  });
}

std::size_t block_shelf::trim(std::size_t enough, in_flight effort) {
  // Blocks that return meanwhile are not counted, so that the loop ends.
  std::size_t count = idle_.visit([](const std::vector<block>& idle) { return idle.size(); });
  std::size_t freed = 0;
  for (; count != 0 && freed < enough; --count) {
    const block removed = idle_.take([effort](const std::vector<block>& idle) {
      for (std::size_t i = idle.size(); i-- != 0;)
        if (effort == in_flight::wait || idle[i]->is_free_for(nullptr)) return i;
      return idle.size();
    });
    if (removed == nullptr) break;
    idle_.forget(1);
    freed += removed->bytes;
    removed->wait_ignoring_errors();
  }
  return freed;
}

used_object* block_of_lease(const std::shared_ptr<void>& resource) noexcept {
  const auto* lease = std::get_deleter<block_return>(resource);
  return lease == nullptr ? nullptr : lease->block;
}

namespace {

constexpr std::size_t node_granule = 64;
using node_lists = std::array<free_list<void*>, 16>;

/// The idle nodes of a size, null for sizes that have no list.
free_list<void*>* nodes_of(std::size_t bytes) {
  static node_lists& lists = process_wide<node_lists>();
  const std::size_t number = bytes / node_granule;
  return number < lists.size() ? &lists[number] : nullptr;
}

}  // namespace

void* take_node(std::size_t bytes) {
  free_list<void*>* const idle = nodes_of(bytes);
  if (idle == nullptr) return ::operator new(bytes);
  return idle->take_or_make(1, [bytes] { return ::operator new((bytes / node_granule + 1) * node_granule); });
}

void give_node_back(void* node, std::size_t bytes) noexcept {
  if (free_list<void*>* const idle = nodes_of(bytes))
    idle->put(std::move(node));
  else
    ::operator delete(node);
}

template <MemorySpace Space>
std::shared_ptr<allocation<Space>> pooled_memory<Space>::allocate(std::string label, std::size_t bytes,
                                                                  int device) {
  // A child has no device, and its parent's threads may have had the locks. Without Kokkos the allocation
  // throws.
  if (process_identity::get().has_lost_kokkos() || !Kokkos::is_initialized())
    return std::make_shared<allocation<Space>>(std::move(label), bytes, device);
  return until_finalize<tensor_pool<Space>>()->allocate(std::move(label), bytes, device);
}

template <MemorySpace Space>
void pooled_memory<Space>::end(std::shared_ptr<allocation<Space>> memory, access_tracker& uses) noexcept {
  if (!process_identity::get().has_lost_kokkos()) tensor_pool<Space>::end(std::move(memory), uses);
}

template <MemorySpace Space>
std::size_t pooled_memory<Space>::limit(int device, std::size_t bytes) {
  return until_finalize<tensor_pool<Space>>()->limit(device, bytes);
}

template struct pooled_memory<device_space>;
template struct pooled_memory<pinned_space>;
template struct pooled_memory<mapped_space>;

template class allocation<device_space>;
template class allocation<pinned_space>;
template class allocation<mapped_space>;
template class allocation<pageable_space>;

}  // namespace ferry::detail
