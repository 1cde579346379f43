// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/allocation.hpp>
#include <ferry/memory/detail/block_lease.hpp>
#include <ferry/memory/detail/event.hpp>
#include <ferry/memory/detail/idle_memory.hpp>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace ferry::detail {

/// An idle block, and the work that may still use it.
template <MemorySpace Space>
struct shelved_block {
  allocation<Space> memory;
  std::vector<block_use> uses;
  std::vector<block_use> spare;  ///< empty; keeps its capacity for the next loan

  /// Whether all work of other instances has ended; `who` is null for a taker that is not an instance. Drops
  /// the uses that have ended.
  bool is_free_for(const instance_id* who) {
    std::erase_if(uses, [who](const block_use& use) {
      return (who == nullptr || use.who != *who) && has_ended(*use.done);
    });
    return is_own_of(who);
  }
  /// Whether only work of `who` uses the block, without event queries.
  [[nodiscard]] bool is_own_of(const instance_id* who) const {
    return std::all_of(uses.begin(), uses.end(),
                       [who](const block_use& use) { return who != nullptr && use.who == *who; });
  }
  /// Waits for all uses. Failed work has ended too; its error is thrown to those who wait for it.
  void end() noexcept {
    for (const auto& use : uses) try {
        use.done->wait();
      } catch (...) {
      }
    uses.clear();
  }
};

/// The idle blocks of a block_cache, by size. Shared with the loans, which may outlive the cache.
/// Thread-safe. Frees no memory and does not wait while it holds its lock.
template <MemorySpace Space>
class block_shelf final : public idle_memory {
 public:
  using block = shelved_block<Space>;
  /// A block outside of the shelf. It keeps its map node, so returning it can't fail.
  using node = typename std::multimap<std::size_t, block>::node_type;

  [[nodiscard]] static node node_of(allocation<Space> memory) {
    std::multimap<std::size_t, block> one;
    const std::size_t bytes = memory.bytes();
    const auto at = one.emplace(bytes, block{});
    at->second.memory = std::move(memory);
    return one.extract(at);
  }

  /// A block of [least, most] bytes that is free for the taker, or an empty node. The taker's own blocks are
  /// preferred: they need no event query. Where `limit` blocks of such sizes are in flight, the smallest of
  /// them, and of equal ones the first returned; the taker must then be ordered after its uses.
  [[nodiscard]] node take(std::size_t least, std::size_t most, const instance_id* who, std::size_t limit) {
    const std::lock_guard lock(guard_);
    const auto first = blocks_.lower_bound(least);
    const auto last = blocks_.upper_bound(most);
    auto found = last;
    if (who != nullptr)
      found = std::find_if(first, last, [who](const auto& each) {
        return !each.second.uses.empty() && each.second.is_own_of(who);
      });
    if (found == last)
      found = std::find_if(first, last, [who](auto& each) { return each.second.is_free_for(who); });
    if (found == last && std::distance(first, last) >= static_cast<std::ptrdiff_t>(limit)) found = first;
    if (found == last) return {};
    return remove(found);
  }

  /// Returns a block. After close() it waits for the work on the block and frees it.
  void put(node back) noexcept {
    {
      const std::lock_guard lock(guard_);
      if (!closed_) {
        idle_bytes_ += back.key();
        blocks_.insert(std::move(back));
        return;
      }
    }
    back.mapped().end();
  }

  void close() noexcept {
    std::multimap<std::size_t, block> dying;
    {
      const std::lock_guard lock(guard_);
      closed_ = true;
      dying.swap(blocks_);
      idle_bytes_ = 0;
    }
    for (auto& [bytes, each] : dying) each.end();
  }

  [[nodiscard]] std::size_t idle_bytes() const override {
    const std::lock_guard lock(guard_);
    return idle_bytes_;
  }

  /// Frees the largest blocks first.
  std::size_t trim(std::size_t enough, in_flight effort) override {
    std::multimap<std::size_t, block> dying;
    std::size_t freed = 0;
    {
      const std::lock_guard lock(guard_);
      for (auto at = blocks_.end(); at != blocks_.begin() && freed < enough;) {
        --at;
        if (effort == in_flight::skip && !at->second.is_free_for(nullptr)) continue;
        freed += at->first;
        const auto which = at++;
        dying.insert(remove(which));
      }
    }
    for (auto& [bytes, each] : dying) each.end();
    return freed;
  }

 private:
  node remove(typename std::multimap<std::size_t, block>::iterator which) {
    idle_bytes_ -= which->first;
    return blocks_.extract(which);
  }

  mutable std::mutex guard_;
  std::multimap<std::size_t, block> blocks_;
  std::size_t idle_bytes_ = 0;
  bool closed_ = false;
};

}  // namespace ferry::detail
