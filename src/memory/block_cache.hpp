// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/access_tracker.hpp>
#include <ferry/memory/detail/allocation.hpp>
#include <ferry/memory/detail/backend.hpp>
#include <ferry/memory/detail/event.hpp>
#include <ferry/memory/detail/free_list.hpp>
#include <ferry/memory/detail/function_ref.hpp>
#include <ferry/memory/detail/memory_charge.hpp>

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace ferry::detail {

/// A block, and the work that may use it.
class shelved_block : public used_object {
 public:
  shelved_block(void* memory, std::size_t size) noexcept : data(memory), bytes(size) {}
  virtual ~shelved_block() = default;

  void* const data;
  const std::size_t bytes;
  int device = -1;           ///< whose tensors take it; -1: any
  std::uint64_t number = 0;  ///< of its return, for those that free the oldest
};

/// A block of a space.
template <MemorySpace Space>
class block_of final : public shelved_block {
 public:
  explicit block_of(allocation<Space> source)
      : shelved_block(source.data(), source.bytes()), memory(std::move(source)) {}

  allocation<Space> memory;
};

/// The idle blocks of a pool, by size. Shared with the leases, which may outlive the pool. Thread-safe. Frees
/// no memory and does not wait while it holds its lock.
class block_shelf final : public idle_memory {
 public:
  using block = std::unique_ptr<shelved_block>;

  block_shelf() = default;
  /// Makes room for a block that is in use, so that its return can't fail.
  void expect() { idle_.expect(1); }
  /// Such a block returns no more.
  void forget() noexcept { idle_.forget(1); }

  /// A block of [smallest, largest] bytes that is free for the taker, or null. The taker's own blocks are
  /// preferred: they need no event query. If `limit` blocks of such sizes are in flight, the smallest of
  /// them, and of equal ones the first returned; the taker must then be ordered after its uses. Blocks of
  /// other devices than `device` are left.
  [[nodiscard]] block take(std::size_t smallest, std::size_t largest, const instance_id* who,
                           std::size_t limit, int device = -1);
  /// Returns a block. After close() it waits for the work on the block and frees it.
  void put(block returned) noexcept;
  /// From here on at most `count` idle blocks of `bytes` bytes in all. Those that returned first are freed;
  /// if work in flight uses them, when later blocks return.
  void limit(std::size_t count, std::size_t bytes) noexcept;
  [[nodiscard]] std::size_t max_bytes() const noexcept { return max_bytes_.load(std::memory_order_relaxed); }

  [[nodiscard]] std::size_t idle_bytes() const override;
  /// Frees the largest blocks first.
  std::size_t trim(std::size_t enough, in_flight effort) override;
  void close() noexcept override;

 private:
  /// The smallest block comes first, of equal ones the first returned.
  struct by_size {
    bool operator()(const block& a, const block& b) const noexcept { return a->bytes < b->bytes; }
  };

  void free_above_limit() noexcept;

  free_list<block, by_size> idle_;
  std::atomic<std::uint64_t> returns_{0};
  std::atomic<std::size_t> max_blocks_{~std::size_t{0}};
  std::atomic<std::size_t> max_bytes_{~std::size_t{0}};
};

/// The deleter of a lease: returns its block to the shelf.
struct block_return {
  std::shared_ptr<block_shelf> shelf;
  shelved_block* block;
  void operator()(void*) const noexcept { shelf->put(block_shelf::block(block)); }
};

/// A cache of scratch memory of one space. A block returns to the cache when the last owner of its lease
/// drops it: after the work that used it (tickets own the leases of their verb), or earlier, if the work was
/// recorded in its block. Idle blocks return to the system by ferry::trim, and when memory or the budget of
/// the space is short. Thread-safe.
template <MemorySpace Space>
class block_cache {
 public:
  using lease = std::shared_ptr<void>;

  /// In-flight limit per block size. Below it, a taker gets a new block, so instances stay independent. At
  /// the limit, a block is reused, and its taker is ordered after the work that uses it.
  static constexpr std::size_t in_flight_limit = 8;

  /// Caches memory on `device`; -1 means Kokkos' device.
  explicit block_cache(int device = -1) : device_(device) {
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
  [[nodiscard]] lease take(std::size_t bytes, instance_id who, function_ref<void(event&)> order_after) {
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
  lease hand_out(std::size_t bytes, const instance_id* who, function_ref<void(event&)> order_after) {
    const std::size_t size = block_bytes(bytes);
    auto owned = shelf_->take(size, largest_reused(bytes), who, in_flight_limit);
    if (owned == nullptr) {
      owned = std::make_unique<block_of<Space>>(
          allocation<Space>("scratch::" + std::string(Space::name), size, device_));
      shelf_->expect();
    }
    shelved_block* const block = owned.release();  // the lease returns it, also if its constructor throws
    lease lent(block->data, block_return{shelf_, block}, node_allocator<std::byte>());
    block->lend(who, order_after);
    return lent;
  }

  std::shared_ptr<block_shelf> shelf_ = std::make_shared<block_shelf>();
  int device_;
};

}  // namespace ferry::detail
