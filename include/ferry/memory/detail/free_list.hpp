// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>

#include <algorithm>
#include <cstddef>
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
  /// The item at place select(idle), none if that is no place in the list.
  template <class Select>
  [[nodiscard]] Item take(const Select& select) {
    const std::lock_guard lock(guard_);
    const std::size_t place = select(std::as_const(idle_));
    return place < idle_.size() ? remove(place) : Item{};
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
  /// Removes the items that wanted(item) holds for, the last first, and passes each to accept(item), which
  /// must not fail.
  template <class Wanted, class Accept>
  void remove_if(const Wanted& select, const Accept& accept) {
    const std::lock_guard lock(guard_);
    for (std::size_t place = idle_.size(); place-- != 0;) {
      if (!select(idle_[place])) continue;
      --items_;
      accept(remove(place));
    }
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
  Item remove(std::size_t place) noexcept {
    Item item = std::move(idle_[place]);
    idle_.erase(idle_.begin() + static_cast<std::ptrdiff_t>(place));
    return item;
  }

  mutable std::mutex guard_;
  std::vector<Item> idle_;
  std::size_t items_ = 0;  ///< idle and in use
  bool closed_ = false;
};

}  // namespace ferry::detail
