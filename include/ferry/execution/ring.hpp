#pragma once

#include <ferry/execution/call.hpp>
#include <ferry/memory/event.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace ferry::detail {

/// Two page-locked slots, so that the host works on one while DMA works on the other. Each stream of chunks
/// occupies the calling thread until its last chunk is enqueued (towards the device) or drained (from it).
template <class Exec>
class ring {
 public:
  /// Slots hold whole items; an item larger than the usual slot gets slots of its own size.
  ring(call<Exec>& of, std::int64_t items, std::int64_t item_bytes) : call_(of), items_(items) {
    const std::int64_t usual = execution_backend<Exec>::tuning().staging_slot_bytes;
    per_slot_ = std::max<std::int64_t>(1, usual / std::max<std::int64_t>(1, item_bytes));
    per_slot_ = std::min(per_slot_, std::max<std::int64_t>(1, items));
    for (auto& slot : slots_) slot = of.template pinned<std::byte>(per_slot_ * item_bytes);
  }

  /// Items that a slot holds.
  [[nodiscard]] std::int64_t per_slot() const { return per_slot_; }

  /// fill(slot, first, count) on the host, then send(slot, first, count) enqueues what reads the slot.
  template <class Fill, class Send>
  void to_device(Fill&& fill, Send&& send) {
    std::array<event_handle, 2> busy{};
    for (std::int64_t first = 0, turn = 0; first < items_; first += per_slot_, turn ^= 1) {
      const auto at = static_cast<std::size_t>(turn);
      const std::int64_t count = std::min(per_slot_, items_ - first);
      if (busy[at] != nullptr) busy[at]->wait();
      fill(slots_[at], first, count);
      send(slots_[at], first, count);
      busy[at] = call_.mark();
    }
  }

  /// fetch(slot, first, count) enqueues what fills the slot, then drain(slot, first, count) on the host.
  template <class Fetch, class Drain>
  void from_device(Fetch&& fetch, Drain&& drain) {
    std::array<event_handle, 2> filled{};
    std::int64_t draining = 0, turn = 0;
    const auto drain_one = [&](std::int64_t first) {
      const auto at = static_cast<std::size_t>((first / per_slot_) % 2);
      if (filled[at] != nullptr) filled[at]->wait();
      drain(slots_[at], first, std::min(per_slot_, items_ - first));
    };
    for (std::int64_t first = 0; first < items_; first += per_slot_, turn ^= 1) {
      if (first - draining >= 2 * per_slot_) {
        drain_one(draining);
        draining += per_slot_;
      }
      const auto at = static_cast<std::size_t>(turn);
      fetch(slots_[at], first, std::min(per_slot_, items_ - first));
      filled[at] = call_.mark();
    }
    for (; draining < items_; draining += per_slot_) drain_one(draining);
  }

 private:
  call<Exec>& call_;
  std::int64_t items_;
  std::int64_t per_slot_;
  std::array<std::byte*, 2> slots_{};
};

}  // namespace ferry::detail
