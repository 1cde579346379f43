// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/memory/detail/allocation.hpp>
#include <ferry/memory/detail/event.hpp>
#include <ferry/memory/detail/free_list.hpp>
#include <ferry/memory/detail/idle_memory.hpp>
#include <ferry/memory/detail/node_pool.hpp>
#include <ferry/memory/detail/use_record.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace ferry::detail {

/// A block, and the work that may use it.
class shelved_block {
 public:
  shelved_block(void* memory, std::size_t size) noexcept : data(memory), bytes(size) {}
  shelved_block(const shelved_block&) = delete;
  shelved_block& operator=(const shelved_block&) = delete;
  virtual ~shelved_block() = default;

  void* const data;
  const std::size_t bytes;
  use_record uses;
  int device = -1;                      ///< whose tensors take it; -1: any
  std::uint64_t turn = 0;               ///< of its return, for those that free the oldest
  std::unique_ptr<shelved_block> next;  ///< in a list of blocks to free
};

/// A block of a space.
template <MemorySpace Space>
class block_of final : public shelved_block {
 public:
  explicit block_of(allocation<Space> memory)
      : shelved_block(memory.data(), memory.bytes()), memory_(std::move(memory)) {}
  [[nodiscard]] allocation<Space>& memory() noexcept { return memory_; }

 private:
  allocation<Space> memory_;
};

class shelf_loan;

/// The idle blocks of a block_cache, by size. Shared with the loans, which may outlive the cache.
/// Thread-safe. Frees no memory and does not wait while it holds its lock.
class block_shelf final : public idle_memory {
 public:
  using block = std::unique_ptr<shelved_block>;

  block_shelf() = default;
  /// Makes room for a block that is in use, so that its return can't fail.
  void expect() { idle_.expect(1); }
  /// Such a block returns no more.
  void forget() noexcept { idle_.forget(1); }

  /// A block of [least, most] bytes that is free for the taker, or null. The taker's own blocks are
  /// preferred: they need no event query. Where `limit` blocks of such sizes are in flight, the smallest of
  /// them, and of equal ones the first returned; the taker must then be ordered after its uses. Blocks of other
  /// devices than `device` are left.
  [[nodiscard]] block take(std::size_t least, std::size_t most, const instance_id* who, std::size_t limit,
                           int device = -1);
  /// Returns a block. After close() it waits for the work on the block and frees it.
  void put(block returned) noexcept;
  /// From here on at most `count` idle blocks of `bytes` bytes in all. Those that returned first are freed; if
  /// work in flight uses them, when later blocks return.
  void limit(std::size_t count, std::size_t bytes) noexcept {
    most_blocks_.store(count, std::memory_order_relaxed);
    most_bytes_.store(bytes, std::memory_order_relaxed);
    free_above_limit();
  }
  [[nodiscard]] std::size_t most_bytes() const noexcept {
    return most_bytes_.load(std::memory_order_relaxed);
  }

  /// The loan of a block from `shelf` to the taker.
  [[nodiscard]] static std::shared_ptr<shelf_loan> lend(const std::shared_ptr<block_shelf>& shelf, block lent,
                                                        const instance_id* who,
                                                        const std::shared_ptr<node_pool>& nodes);

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
  std::atomic<std::uint64_t> turn_{0};
  std::atomic<std::size_t> most_blocks_{~std::size_t{0}};
  std::atomic<std::size_t> most_bytes_{~std::size_t{0}};
};

/// A block in use, which returns to its shelf with the uses that may still be in flight.
class shelf_loan final : public used_object {
 public:
  /// To instance `*who`, or to the host if it is null.
  shelf_loan(std::shared_ptr<block_shelf> home, block_shelf::block lent, const instance_id* who);
  shelf_loan(const shelf_loan&) = delete;
  shelf_loan& operator=(const shelf_loan&) = delete;
  ~shelf_loan() override;

  void promise(bool writes) override;
  void note(bool writes, event_handle end, instance_id who) noexcept override;
  void withdraw(bool writes) noexcept override;

  [[nodiscard]] void* data() const { return block_->data; }

  /// Calls order_after(event&) for each point of other instances than `*who` before the loan.
  template <class OrderAfter>
  void order_after_earlier_uses(const instance_id* who, OrderAfter&& order_after) const {
    block_->uses.visit_others(who, [&](const event_handle& end) { order_after(*end); });
  }

 private:
  std::shared_ptr<block_shelf> home_;
  block_shelf::block block_;
  std::mutex guard_;  ///< of the record
};

}  // namespace ferry::detail
