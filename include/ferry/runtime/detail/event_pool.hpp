// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/node_pool.hpp>

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace ferry::detail {

/// Reusable events of one backend. A lease returns when its last owner drops it, also before the recorded
/// work has ended: recording an event again does not affect earlier waits on a device. Events are made in
/// batches of `Batch`, more than a device's queue holds, so a host that runs ahead of the device makes no
/// further ones. Thread-safe.
template <class NativeEvent, std::size_t Batch = 1024>
class event_pool {
  struct shelf {
    std::mutex guard;
    std::vector<std::unique_ptr<NativeEvent>> free;  // has room for all events
    std::size_t made = 0;
    bool closed = false;
  };

 public:
  using lease = std::shared_ptr<NativeEvent>;

  explicit event_pool(std::shared_ptr<detail::node_pool> nodes = std::make_shared<detail::node_pool>())
      : nodes_(std::move(nodes)), shelf_(std::make_shared<shelf>()) {}
  event_pool(const event_pool&) = delete;
  event_pool& operator=(const event_pool&) = delete;
  /// Events in use are destroyed when their owners drop them.
  ~event_pool() {
    std::vector<std::unique_ptr<NativeEvent>> dying;
    const std::lock_guard lock(shelf_->guard);
    shelf_->closed = true;
    dying.swap(shelf_->free);
  }

  [[nodiscard]] lease take() {
    std::unique_ptr<NativeEvent> made;
    {
      const std::lock_guard lock(shelf_->guard);
      auto& free = shelf_->free;
      if (free.empty()) {
        free.reserve(shelf_->made + Batch);
        for (std::size_t i = 0; i < Batch; ++i, ++shelf_->made)
          free.push_back(std::make_unique<NativeEvent>());
      }
      made = std::move(free.back());
      free.pop_back();
    }
    const auto give_back = [home = shelf_](NativeEvent* dropped) noexcept {
      std::unique_ptr<NativeEvent> back(dropped);
      const std::lock_guard lock(home->guard);
      if (!home->closed) home->free.push_back(std::move(back));
    };
    return {made.release(), give_back, detail::node_allocator<NativeEvent>(nodes_)};
  }

 private:
  std::shared_ptr<detail::node_pool> nodes_;
  std::shared_ptr<shelf> shelf_;
};

}  // namespace ferry::detail
