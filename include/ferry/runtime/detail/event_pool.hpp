// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/dynamic_array.hpp>
#include <ferry/memory/detail/node_pool.hpp>
#include <ferry/memory/detail/owned.hpp>
#include <ferry/memory/detail/share.hpp>

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>

namespace ferry::detail {

/// Reusable events of one backend. A lease returns when its last owner drops it, also before the recorded
/// work has ended: recording an event again does not affect earlier waits on a device. Events are made in
/// batches of `Batch`, more than a device's queue holds, so a host that runs ahead of the device makes no
/// further ones. Thread-safe.
template <class NativeEvent, std::size_t Batch = 1024>
class event_pool {
  struct shelf {
    std::mutex guard;
    dynamic_array<owned<NativeEvent>> free;  // has room for all events
    std::size_t made = 0;
    bool closed = false;
  };

 public:
  using lease = std::shared_ptr<NativeEvent>;

  explicit event_pool(std::shared_ptr<detail::node_pool> nodes = share<detail::node_pool>())
      : nodes_(std::move(nodes)), shelf_(share<shelf>()) {}
  event_pool(const event_pool&) = delete;
  event_pool& operator=(const event_pool&) = delete;
  /// Events in use are destroyed when their owners drop them.
  ~event_pool() {
    dynamic_array<owned<NativeEvent>> dying;
    const std::lock_guard lock(shelf_->guard);
    shelf_->closed = true;
    dying.swap(shelf_->free);
  }

  [[nodiscard]] lease take() {
    owned<NativeEvent> made;
    {
      const std::lock_guard lock(shelf_->guard);
      auto& free = shelf_->free;
      if (free.empty()) {
        free.reserve(shelf_->made + Batch);
        for (std::size_t i = 0; i < Batch; ++i, ++shelf_->made) free.push_back(make_owned<NativeEvent>());
      }
      made = std::move(free.back());
      free.pop_back();
    }
    const auto give_back = [home = shelf_](NativeEvent* dropped) noexcept {
      owned<NativeEvent> back(dropped);
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
