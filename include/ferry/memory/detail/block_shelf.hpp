// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/memory/detail/allocation.hpp>
#include <ferry/memory/detail/block_lease.hpp>
#include <ferry/memory/detail/dynamic_array.hpp>
#include <ferry/memory/detail/event.hpp>
#include <ferry/memory/detail/idle_memory.hpp>
#include <ferry/memory/detail/node_pool.hpp>
#include <ferry/memory/detail/owned.hpp>

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>

namespace ferry::detail {

/// An idle block, and the work that may still use it.
class shelved_block {
 public:
  shelved_block(void* where, std::size_t size) noexcept : data(where), bytes(size) {}
  shelved_block(const shelved_block&) = delete;
  shelved_block& operator=(const shelved_block&) = delete;
  /// Blocks own each other in a list: inlined, each level would contain the next one.
  [[gnu::noinline]] virtual ~shelved_block() = default;

  /// Whether all work of other instances has ended; `who` is null for a taker that is not an instance. Drops
  /// the uses that have ended.
  FERRY_LAZY [[nodiscard]] bool is_free_for(const instance_id* who);
  /// Whether only work of `who` uses the block, without event queries.
  FERRY_LAZY [[nodiscard]] bool is_own_of(const instance_id* who) const;
  /// Waits for all uses. Failed work has ended too; its error is thrown to those who wait for it.
  FERRY_LAZY [[gnu::cold]] void end() noexcept;

  void* const data;
  const std::size_t bytes;
  dynamic_array<block_use> uses;
  dynamic_array<block_use> spare;  ///< empty; keeps its capacity for the next loan
  owned<shelved_block> next;       ///< in a list of blocks to free
};

/// A block of a space.
template <MemorySpace Space>
class block_of final : public shelved_block {
 public:
  explicit block_of(allocation<Space> memory)
      : shelved_block(memory.data(), memory.bytes()), memory_(std::move(memory)) {}

 private:
  allocation<Space> memory_;
};

class shelf_loan;

/// The idle blocks of a block_cache, by size. Shared with the loans, which may outlive the cache.
/// Thread-safe. Frees no memory and does not wait while it holds its lock.
class block_shelf final : public idle_memory {
 public:
  using block = owned<shelved_block>;

  block_shelf() = default;
  /// Adds a block that is in use. The shelf has room for all blocks, so returning one can't fail.
  FERRY_LAZY [[gnu::cold]] [[nodiscard]] block add(block made);

  /// A block of [least, most] bytes that is free for the taker, or null. The taker's own blocks are
  /// preferred: they need no event query. Where `limit` blocks of such sizes are in flight, the smallest of
  /// them, and of equal ones the first returned; the taker must then be ordered after its uses.
  FERRY_LAZY [[nodiscard]] block take(std::size_t least, std::size_t most, const instance_id* who,
                                      std::size_t limit);
  /// Returns a block. After close() it waits for the work on the block and frees it.
  FERRY_LAZY void put(block back) noexcept;

  /// The loan of a block from `from` to the taker.
  FERRY_LAZY [[nodiscard]] static std::shared_ptr<shelf_loan> lend(const std::shared_ptr<block_shelf>& from,
                                                                   block lent, const instance_id* who,
                                                                   const std::shared_ptr<node_pool>& nodes);

  // FERRY_INLINE here, too: a first virtual function that becomes inline only later makes every source emit
  // the table of virtual functions, and all that they call.
  [[nodiscard, gnu::cold]] FERRY_INLINE std::size_t idle_bytes() const override;
  /// Frees the largest blocks first.
  [[gnu::cold]] FERRY_INLINE std::size_t trim(std::size_t enough, in_flight effort) override;
  [[gnu::cold]] FERRY_INLINE void close() noexcept override;

 private:
  /// The first block of more than `bytes` bytes.
  FERRY_LAZY [[nodiscard]] std::size_t after(std::size_t bytes) const;
  FERRY_LAZY [[nodiscard]] block remove(std::size_t at) noexcept;

  mutable std::mutex guard_;
  dynamic_array<block> blocks_;  // the smallest first
  std::size_t made_ = 0;         // on the shelf or in use
  std::size_t idle_bytes_ = 0;
  bool closed_ = false;
};

/// A block in use, which returns to its shelf.
class shelf_loan final : public block_loan {
 public:
  shelf_loan(std::shared_ptr<block_shelf> home, block_shelf::block lent, const instance_id* who);
  shelf_loan(const shelf_loan&) = delete;
  shelf_loan& operator=(const shelf_loan&) = delete;
  FERRY_INLINE ~shelf_loan() override;  // inline here, too, as in block_shelf

  [[nodiscard]] void* data() const { return block_->data; }

  template <class OrderAfter>
  void order_after_inherited(const instance_id* who, OrderAfter&& order_after) const {
    for (const auto& use : inherited)
      if (who == nullptr || use.who != *who) order_after(*use.done);
  }

 private:
  std::shared_ptr<block_shelf> home_;
  block_shelf::block block_;
};

#ifdef FERRY_RUNTIME_BODIES

FERRY_LAZY bool shelved_block::is_free_for(const instance_id* who) {
  uses.erase_if(
      [who](const block_use& use) { return (who == nullptr || use.who != *who) && has_ended(*use.done); });
  return is_own_of(who);
}

FERRY_LAZY bool shelved_block::is_own_of(const instance_id* who) const {
  bool own = true;
  for (const block_use& use : uses) own = own && who != nullptr && use.who == *who;
  return own;
}

FERRY_LAZY void shelved_block::end() noexcept {
  for (const auto& use : uses) try {
      use.done->wait();
    } catch (...) {
    }
  uses.clear();
}

FERRY_LAZY block_shelf::block block_shelf::add(block made) {
  const std::lock_guard lock(guard_);
  blocks_.reserve(made_ + 1);
  ++made_;
  return made;
}

FERRY_LAZY block_shelf::block block_shelf::take(std::size_t least, std::size_t most, const instance_id* who,
                                                std::size_t limit) {
  const std::lock_guard lock(guard_);
  const std::size_t first = least == 0 ? 0 : after(least - 1);
  const std::size_t last = after(most);
  if (who != nullptr)
    for (std::size_t at = first; at < last; ++at)
      if (!blocks_[at]->uses.empty() && blocks_[at]->is_own_of(who)) return remove(at);
  for (std::size_t at = first; at < last; ++at)
    if (blocks_[at]->is_free_for(who)) return remove(at);
  if (last > first && last - first >= limit) return remove(first);
  return {};
}

FERRY_LAZY void block_shelf::put(block back) noexcept {
  {
    const std::lock_guard lock(guard_);
    if (!closed_) {
      const std::size_t place = after(back->bytes);
      idle_bytes_ += back->bytes;
      blocks_.push_reserved(nullptr);
      for (std::size_t at = blocks_.size() - 1; at > place; --at) blocks_[at] = std::move(blocks_[at - 1]);
      blocks_[place] = std::move(back);
      return;
    }
  }
  back->end();
}

FERRY_INLINE void block_shelf::close() noexcept {
  dynamic_array<block> dying;
  {
    const std::lock_guard lock(guard_);
    closed_ = true;
    dying.swap(blocks_);
    idle_bytes_ = 0;
  }
  for (const auto& each : dying) each->end();
}

FERRY_INLINE std::size_t block_shelf::idle_bytes() const {
  const std::lock_guard lock(guard_);
  return idle_bytes_;
}

FERRY_INLINE std::size_t block_shelf::trim(std::size_t enough, in_flight effort) {
  block dying;
  std::size_t freed = 0;
  {
    const std::lock_guard lock(guard_);
    for (std::size_t at = blocks_.size(); at != 0 && freed < enough;) {
      --at;
      if (effort == in_flight::skip && !blocks_[at]->is_free_for(nullptr)) continue;
      freed += blocks_[at]->bytes;
      block one = remove(at);
      one->next = std::move(dying);
      dying = std::move(one);
      --made_;
    }
  }
  while (dying != nullptr) {
    dying->end();
    dying = std::move(dying->next);
  }
  return freed;
}

FERRY_LAZY std::shared_ptr<shelf_loan> block_shelf::lend(const std::shared_ptr<block_shelf>& from, block lent,
                                                         const instance_id* who,
                                                         const std::shared_ptr<node_pool>& nodes) {
  try {
    return std::allocate_shared<shelf_loan>(node_allocator<shelf_loan>(nodes), from, std::move(lent), who);
  } catch (...) {  // no memory for the loan: work in flight may still use the block
    from->put(std::move(lent));
    throw;
  }
}

FERRY_INLINE shelf_loan::shelf_loan(std::shared_ptr<block_shelf> home, block_shelf::block lent,
                                    const instance_id* who)
    : home_(std::move(home)), block_(std::move(lent)) {
  inherited.swap(block_->uses);
  uses.swap(block_->spare);
  ordered = who != nullptr;
  if (ordered) taker = *who;
}

FERRY_INLINE shelf_loan::~shelf_loan() {
  for (block_use& use : uses) inherited.push_reserved(std::move(use));
  uses.clear();
  inherited.swap(block_->uses);
  uses.swap(block_->spare);
  home_->put(std::move(block_));
}

FERRY_LAZY std::size_t block_shelf::after(std::size_t bytes) const {
  std::size_t first = 0;
  for (std::size_t last = blocks_.size(); first < last;) {
    const std::size_t middle = first + (last - first) / 2;
    if (blocks_[middle]->bytes <= bytes)
      first = middle + 1;
    else
      last = middle;
  }
  return first;
}

FERRY_LAZY block_shelf::block block_shelf::remove(std::size_t at) noexcept {
  idle_bytes_ -= blocks_[at]->bytes;
  block taken = std::move(blocks_[at]);
  blocks_.erase(blocks_.begin() + at);
  return taken;
}

#endif

}  // namespace ferry::detail
