#pragma once

#include <ferry/memory/allocation.hpp>

#include <bit>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace ferry {

/// Scratch memory of one space, kept for the next taker. A lease goes back to the cache when its last owner
/// drops it, which is after the work that used it has ended: tickets own the leases of their verb.
template <MemorySpace Space>
class block_cache {
  struct shelf {
    std::mutex guard;
    std::multimap<std::size_t, allocation<Space>> free;
    bool closed = false;
  };

 public:
  using lease = std::shared_ptr<void>;

  block_cache() : shelf_(std::make_shared<shelf>()) {}
  block_cache(const block_cache&) = delete;
  block_cache& operator=(const block_cache&) = delete;

  /// Leases that are still out free their memory themselves when they end.
  ~block_cache() {
    std::multimap<std::size_t, allocation<Space>> dying;
    const std::lock_guard lock(shelf_->guard);
    shelf_->closed = true;
    dying.swap(shelf_->free);
  }

  /// At least `bytes` bytes; a block up to an eighth larger may be handed out again.
  [[nodiscard]] lease take(std::size_t bytes) {
    const std::size_t size = rounded(bytes);
    allocation<Space> block;
    {
      const std::lock_guard lock(shelf_->guard);
      const auto found = shelf_->free.lower_bound(size);
      if (found != shelf_->free.end() && found->first <= size + size / 8) {
        block = std::move(found->second);
        shelf_->free.erase(found);
      }
    }
    if (block.data() == nullptr) block = fresh(size);
    void* data = block.data();
    auto owner = std::make_shared<loan>(shelf_, std::move(block));
    return lease(std::move(owner), data);
  }

 private:
  struct loan {
    loan(std::shared_ptr<shelf> home, allocation<Space> what)
        : shelf_of(std::move(home)), block(std::move(what)) {}
    loan(const loan&) = delete;
    loan& operator=(const loan&) = delete;
    ~loan() {
      const std::lock_guard lock(shelf_of->guard);
      if (!shelf_of->closed) shelf_of->free.emplace(block.bytes(), std::move(block));
    }
    std::shared_ptr<shelf> shelf_of;
    allocation<Space> block;
  };

  /// What lies idle on the shelf goes back to the system before memory is said to be short.
  allocation<Space> fresh(std::size_t size) {
    const std::string label = "scratch::" + std::string(Space::name);
    try {
      return allocation<Space>(label, size);
    } catch (const bad_alloc&) {
      const std::lock_guard lock(shelf_->guard);
      if (shelf_->free.empty()) throw;
      shelf_->free.clear();
    }
    return allocation<Space>(label, size);
  }

  /// Eight sizes to each power of two: at most an eighth is wasted, and batches of nearly equal size share
  /// blocks.
  static std::size_t rounded(std::size_t bytes) {
    constexpr std::size_t smallest = 4096;
    if (bytes <= smallest) return smallest;
    const std::size_t step = std::bit_floor(bytes) / 8;
    return (bytes + step - 1) / step * step;
  }

  std::shared_ptr<shelf> shelf_;
};

}  // namespace ferry
