#pragma once

#include <ferry/memory/allocation.hpp>
#include <ferry/memory/block_lease.hpp>
#include <ferry/memory/event.hpp>
#include <ferry/memory/idle_memory.hpp>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace ferry::detail {

/// A block that nobody has on loan, and the work that may still use it.
template <MemorySpace Space>
struct shelved_block {
  allocation<Space> memory;
  std::vector<block_use> uses;

  /// Whether all work of others has ended; `who` is null for a taker without an order of its own. Forgets
  /// what has ended.
  bool is_free_for(const instance_id* who) {
    std::erase_if(uses, [who](const block_use& use) {
      return (who == nullptr || use.who != *who) && use.done->ready();
    });
    return is_own_of(who);
  }
  /// The same without asking the events.
  [[nodiscard]] bool is_own_of(const instance_id* who) const {
    return std::all_of(uses.begin(), uses.end(),
                       [who](const block_use& use) { return who != nullptr && use.who == *who; });
  }
  /// Work that failed has ended too; whoever waits for it hears of that.
  void end() noexcept {
    for (const auto& use : uses) try {
        use.done->wait();
      } catch (...) {
      }
    uses.clear();
  }
};

/// The blocks of a block_cache that are not on loan, by size. Shared with the loans, which may outlive the cache.
/// Thread-safe. Frees no memory and waits for nothing under its lock.
template <MemorySpace Space>
class block_shelf final : public idle_memory {
 public:
  using block = shelved_block<Space>;

  /// A block of [least, most] bytes that is free for the taker, if there is one: its own first, because that
  /// asks no event and leaves the others to others. Else, where `limit` blocks of such sizes are in flight,
  /// the smallest, of equal ones the first to come back: the taker has to get behind its uses.
  std::optional<block> take(std::size_t least, std::size_t most, const instance_id* who, std::size_t limit) {
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
    if (found == last) return std::nullopt;
    return remove(found);
  }

  /// After close(), waits for the block's work and frees it.
  void put(block back) noexcept {
    try {
      const std::lock_guard lock(guard_);
      if (!closed_) {
        const std::size_t bytes = back.memory.bytes();
        const auto node = blocks_.emplace(bytes, block{});
        node->second = std::move(back);
        idle_bytes_ += bytes;
        return;
      }
    } catch (...) {  // no memory for the list's node
    }
    back.end();
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

  /// Largest blocks first.
  std::size_t trim(std::size_t enough, in_flight effort) override {
    std::vector<block> dying;
    std::size_t freed = 0;
    {
      const std::lock_guard lock(guard_);
      for (auto at = blocks_.end(); at != blocks_.begin() && freed < enough;) {
        --at;
        if (effort == in_flight::skip && !at->second.is_free_for(nullptr)) continue;
        freed += at->first;
        const auto which = at++;
        dying.push_back(remove(which));
      }
    }
    for (auto& each : dying) each.end();
    return freed;
  }

 private:
  block remove(typename std::multimap<std::size_t, block>::iterator which) {
    block taken = std::move(which->second);
    idle_bytes_ -= which->first;
    blocks_.erase(which);
    return taken;
  }

  mutable std::mutex guard_;
  std::multimap<std::size_t, block> blocks_;
  std::size_t idle_bytes_ = 0;
  bool closed_ = false;
};

}  // namespace ferry::detail
