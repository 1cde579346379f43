// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "slot_ring.hpp"

#include <ferry/extend.hpp>
#include <ferry/loader/detail/lane.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <mutex>

namespace ferry::detail {

/// The thread of a prefetcher whose batches travel: it enqueues the transfers in order and watches for the
/// ends of transfers and of the user's work. It polls, because a thread that blocks on a device spins.
class batch_mover {
 public:
  batch_mover(slot_ring& ring, lane& way, const slot_layout& layout)
      : ring_(ring), lane_(way), layout_(layout), landed_(ring.first) {}

  void run() noexcept {
    std::unique_lock lock(ring_.guard);
    auto since = slot::clock::now();
    while (!ring_.stops()) {
      try {
        const bool sent = send_made(lock);
        const bool ended = look_for_ends(lock);
        if (sent || ended) since = slot::clock::now();
      } catch (...) {
        if (!lock.owns_lock()) lock.lock();
        ring_.broken = std::current_exception();
        ring_.is_ready.notify_all();
        return;
      }
      if (ring_.stops()) return;
      if (ring_.next_is_made()) continue;
      if (landed_ < ring_.ready || ring_.retired < ring_.released) {
        // The longer nothing ends, the less it matters how soon the end is seen.
        using std::chrono::microseconds;
        const auto pause = std::clamp<slot::clock::duration>((slot::clock::now() - since) / 16,
                                                             microseconds(10), microseconds(500));
        ring_.changed.wait_for(lock, pause);
      } else {
        ring_.changed.wait(
            lock, [this] { return ring_.stops() || ring_.next_is_made() || ring_.retired < ring_.released; });
        since = slot::clock::now();
      }
    }
  }

 private:
  bool send_made(std::unique_lock<std::mutex>& lock) {
    bool any = false;
    for (; !ring_.stops() && ring_.next_is_made(); any = true) {
      slot& batch_slot = ring_.of(ring_.ready);
      if (batch_slot.failure == nullptr) {
        lock.unlock();
        batch_slot.sent = slot::clock::now();
        const std::int64_t bytes = send(batch_slot);
        lock.lock();
        ring_.clock_of(batch_slot.number).times.bytes += bytes;
      }
      ++ring_.ready;
      ring_.is_ready.notify_all();
    }
    return any;
  }
  /// An error of the transfer is the batch's.
  std::int64_t send(slot& batch_slot) {
    try {
      return lane_.send(batch_slot, layout_, static_cast<std::int64_t>(batch_slot.samples.size()));
    } catch (...) {
      batch_slot.failure = std::current_exception();
      return 0;
    }
  }

  bool look_for_ends(std::unique_lock<std::mutex>& lock) {
    bool any = false;
    for (; landed_ < ring_.ready; ++landed_, any = true) {
      slot& batch_slot = ring_.of(landed_);
      const event_handle end = batch_slot.arrived;
      lock.unlock();
      const bool ended = end == nullptr || end->ready();
      const auto begin = std::max(batch_slot.sent, last_landed_), now = slot::clock::now();
      lock.lock();
      if (!ended) break;
      if (end != nullptr) ring_.clock_of(batch_slot.number).times.transfer += slot_ring::seconds(now - begin);
      last_landed_ = now;
    }
    for (; ring_.retired < std::min(ring_.released, landed_); any = true) {
      slot& batch_slot = ring_.of(ring_.retired);
      lock.unlock();
      const bool ended = (batch_slot.released == nullptr || batch_slot.released->ready()) &&
                         is_idle(*batch_slot.host_accesses) && is_idle(*batch_slot.device_accesses);
      lock.lock();
      if (!ended) break;
      ring_.retire();
    }
    return any;
  }
  /// True if the verbs of all instances that use a slot have ended.
  static bool is_idle(access_tracker& accesses) {
    constexpr auto nobody = ~instance_id{0};
    for (const event_handle& event : accesses.before_write(nobody))
      if (event != nullptr && !event->ready()) return false;
    accesses.wait_for_all();  // they have ended: this drops them
    return true;
  }

  slot_ring& ring_;
  lane& lane_;
  const slot_layout& layout_;
  std::int64_t landed_;  ///< batches whose transfer has ended
  slot::clock::time_point last_landed_{};
};

}  // namespace ferry::detail
