// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "block_shelf.hpp"

#include <ferry/memory/detail/allocation.hpp>
#include <ferry/memory/detail/device_account.hpp>
#include <ferry/memory/detail/event.hpp>
#include <ferry/memory/detail/idle_memory.hpp>
#include <ferry/memory/detail/node_pool.hpp>
#include <ferry/memory/detail/use_record.hpp>

#include <bit>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

namespace ferry::detail {

/// A cache of scratch memory of one space. A block returns to the cache when the last owner of its lease
/// drops it: after the work that used it (tickets own the leases of their verb), or earlier, if the work was
/// noted in its loan. Idle blocks return to the system by ferry::trim, and when memory or the budget of the
/// space is short. Thread-safe.
template <MemorySpace Space>
class block_cache {
 public:
  using lease = std::shared_ptr<void>;

  /// In-flight limit per block size. Below it, a taker gets a new block, so instances stay independent. At
  /// the limit, a block is reused, and its taker is ordered after the work that uses it.
  static constexpr std::size_t in_flight_limit = 8;

  /// Caches memory on `device`; -1 means Kokkos' device.
  explicit block_cache(std::shared_ptr<detail::node_pool> nodes = std::make_shared<detail::node_pool>(),
                       int device = -1)
      : nodes_(std::move(nodes)), device_(device) {
    add_idle_memory(account_of<Space>(device), shelf_);
  }
  block_cache(const block_cache&) = delete;
  block_cache& operator=(const block_cache&) = delete;

  /// Waits for the work that uses idle blocks. Leases that live longer free their memory themselves.
  ~block_cache() { shelf_->close(); }

  /// At least `bytes` bytes that no work uses, so the host may write to them. Waits only if
  /// in_flight_limit blocks of this size are in flight.
  [[nodiscard]] lease take(std::size_t bytes) {
    return hand_out(bytes, nullptr, [](event& before) { before.wait(); });
  }

  /// At least `bytes` bytes for work of instance `who` only. Earlier work of `who` may still use them. At
  /// in_flight_limit, work of other instances may too: order_after(event&) is called for each of these and
  /// must order all later work of `who` after the event. Never waits itself.
  template <class OrderAfter>
  [[nodiscard]] lease take(std::size_t bytes, instance_id who, OrderAfter&& order_after) {
    return hand_out(bytes, &who, order_after);
  }

  /// Size of a new block: one of eight sizes per power of two, at least 4096 bytes. So at most an eighth is
  /// unused above that, and batches of similar sizes share blocks.
  [[nodiscard]] static constexpr std::size_t block_bytes(std::size_t bytes) {
    constexpr std::size_t smallest = 4096;
    if (bytes <= smallest) return smallest;
    const std::size_t step = std::bit_floor(bytes) / 8;
    const std::size_t size = (bytes + step - 1) / step * step;
    return size < bytes ? bytes : size;  // overflow: the allocation will throw
  }

  /// Size of the largest cached block that may be reused: up to an eighth above block_bytes.
  [[nodiscard]] static constexpr std::size_t largest_reused(std::size_t bytes) {
    const std::size_t size = block_bytes(bytes);
    return size + size / 8 < size ? size : size + size / 8;
  }

 private:
  template <class OrderAfter>
  lease hand_out(std::size_t bytes, const instance_id* who, OrderAfter&& order_after) {
    const std::size_t size = block_bytes(bytes);
    auto block = shelf_->take(size, largest_reused(bytes), who, in_flight_limit);
    if (block == nullptr) block = allocate(size);
    const auto loan = block_shelf::lend(shelf_, std::move(block), who, nodes_);
    lease lent(loan->data(), detail::block_return{loan}, detail::node_allocator<std::byte>(nodes_));
    loan->order_after_earlier_uses(who, order_after);
    return lent;
  }

  block_shelf::block allocate(std::size_t bytes) {
    auto block = std::make_unique<block_of<Space>>(
        allocation<Space>("scratch::" + std::string(Space::name), bytes, device_));
    shelf_->expect();
    return block;
  }

  std::shared_ptr<detail::node_pool> nodes_;
  std::shared_ptr<block_shelf> shelf_ = std::make_shared<block_shelf>();
  int device_;
};

}  // namespace ferry::detail
