// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>
#include <vector>

namespace ferry::detail {

/// No item comes before another: a free_list then hands out what returned last.
struct by_return {
  template <class Item>
  bool operator()(const Item&, const Item&) const noexcept {
    return false;
  }
};

/// The idle items of a pool, which their users take and put back, so that a steady loop makes no further
/// ones. The list has room for all items of the pool, so a return can't fail. Makes and destroys no item
/// while it holds its lock. An item is a pointer or a handle, and `Item{}` means no item. Thread-safe.
template <class Item, class Order = by_return>
class free_list {
 public:
  free_list() = default;
  free_list(const free_list&) = delete;
  free_list& operator=(const free_list&) = delete;
  ~free_list() = default;

  /// Makes room for `count` further items, before they are made.
  void expect(std::size_t count) {
    const std::lock_guard lock(guard_);
    const std::size_t items = items_ + count;
    if (items > idle_.capacity()) idle_.reserve(std::max(items, 2 * idle_.capacity()));
    items_ = items;
  }
  /// `count` items were not made, or have ended.
  void forget(std::size_t count) noexcept {
    const std::lock_guard lock(guard_);
    items_ -= count;
  }

  /// The last item of the order.
  [[nodiscard]] Item take() {
    return take([](const std::vector<Item>& idle) { return idle.size() - 1; });
  }
  /// The item at offset select(idle), none if that is no offset in the list.
  template <class Select>
  [[nodiscard]] Item take(const Select& select) {
    const std::lock_guard lock(guard_);
    const std::size_t offset = select(std::as_const(idle_));
    return offset < idle_.size() ? remove(offset) : Item{};
  }
  /// The last item of the order. Where there is none, makes `count` items.
  template <class Make>
  [[nodiscard]] Item take_or_make(std::size_t count, const Make& make) {
    if (Item idle = take(); idle != Item{}) return idle;
    expect(count);
    std::size_t missing = count;
    try {
      for (; missing > 1; --missing) put(make());
      return make();
    } catch (...) {
      forget(missing);
      throw;
    }
  }

  /// Returns an item. After close() the item stays with the caller, and the result is false.
  bool put(Item&& item) noexcept {
    const std::lock_guard lock(guard_);
    if (closed_) return false;
    if constexpr (std::is_same_v<Order, by_return>)
      idle_.push_back(std::move(item));
    else
      idle_.insert(std::upper_bound(idle_.begin(), idle_.end(), item, Order{}), std::move(item));
    return true;
  }

  /// Calls action(idle) with the lock.
  template <class Action>
  decltype(auto) visit(const Action& action) const {
    const std::lock_guard lock(guard_);
    return action(idle_);
  }
  /// The idle items. Those that are still in use return no more.
  [[nodiscard]] std::vector<Item> close() noexcept {
    std::vector<Item> last;
    const std::lock_guard lock(guard_);
    closed_ = true;
    last.swap(idle_);
    return last;
  }

 private:
  Item remove(std::size_t offset) noexcept {
    Item item = std::move(idle_[offset]);
    idle_.erase(idle_.begin() + static_cast<std::ptrdiff_t>(offset));
    return item;
  }

  mutable std::mutex guard_;
  std::vector<Item> idle_;
  std::size_t items_ = 0;  ///< idle and in use
  bool closed_ = false;
};

/// Memory for the small objects of a verb, such as the control blocks of its leases. Returned memory is kept
/// for the next verb, so a steady loop does not use the heap.
[[nodiscard]] void* take_node(std::size_t bytes);
void give_node_back(void* node, std::size_t bytes) noexcept;

/// A standard allocator of such memory.
template <class T>
struct node_allocator {
  static_assert(alignof(T) <= alignof(std::max_align_t));
  using value_type = T;

  node_allocator() = default;
  template <class Other>
  node_allocator(const node_allocator<Other>&) noexcept {}

  [[nodiscard]] T* allocate(std::size_t count) { return static_cast<T*>(take_node(count * sizeof(T))); }
  void deallocate(T* node, std::size_t count) noexcept { give_node_back(node, count * sizeof(T)); }

  template <class Other>
  [[nodiscard]] bool operator==(const node_allocator<Other>&) const noexcept {
    return true;
  }
};

/// Reusable events of one backend. A lease returns when its last owner drops it, also before the recorded
/// work has ended: recording an event again does not affect earlier waits on a device. Events are made in
/// batches of `Batch`, more than a device's queue holds, so a host that runs ahead of the device makes no
/// further ones. Thread-safe.
template <class NativeEvent, std::size_t Batch = 1024>
class event_pool {
  using list = free_list<std::unique_ptr<NativeEvent>>;

 public:
  using lease = std::shared_ptr<NativeEvent>;

  event_pool() = default;
  event_pool(const event_pool&) = delete;
  event_pool& operator=(const event_pool&) = delete;
  /// Events in use are destroyed when their owners drop them.
  ~event_pool() { static_cast<void>(idle_->close()); }

  [[nodiscard]] lease take() {
    auto event = idle_->take_or_make(Batch, [] { return std::make_unique<NativeEvent>(); });
    const auto give_back = [idle = idle_](NativeEvent* dropped) noexcept {
      idle->put(std::unique_ptr<NativeEvent>(dropped));
    };
    return {event.release(), give_back, node_allocator<NativeEvent>()};
  }

 private:
  std::shared_ptr<list> idle_ = std::make_shared<list>();
};

}  // namespace ferry::detail
