// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/free_list.hpp>
#include <ferry/memory/detail/node_pool.hpp>

#include <cstddef>
#include <memory>
#include <utility>

namespace ferry::detail {

/// Reusable events of one backend. A lease returns when its last owner drops it, also before the recorded
/// work has ended: recording an event again does not affect earlier waits on a device. Events are made in
/// batches of `Batch`, more than a device's queue holds, so a host that runs ahead of the device makes no
/// further ones. Thread-safe.
template <class NativeEvent, std::size_t Batch = 1024>
class event_pool {
  using list = free_list<std::unique_ptr<NativeEvent>>;

 public:
  using lease = std::shared_ptr<NativeEvent>;

  explicit event_pool(std::shared_ptr<detail::node_pool> nodes = std::make_shared<detail::node_pool>())
      : nodes_(std::move(nodes)) {}
  event_pool(const event_pool&) = delete;
  event_pool& operator=(const event_pool&) = delete;
  /// Events in use are destroyed when their owners drop them.
  ~event_pool() { static_cast<void>(idle_->close()); }

  [[nodiscard]] lease take() {
    auto event = idle_->take_or_make(Batch, [] { return std::make_unique<NativeEvent>(); });
    const auto give_back = [idle = idle_](NativeEvent* dropped) noexcept {
      idle->put(std::unique_ptr<NativeEvent>(dropped));
    };
    return {event.release(), give_back, detail::node_allocator<NativeEvent>(nodes_)};
  }

 private:
  std::shared_ptr<detail::node_pool> nodes_;
  std::shared_ptr<list> idle_ = std::make_shared<list>();
};

}  // namespace ferry::detail
