// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/loader/detail/batch_order.hpp>
#include <ferry/loader/detail/slot.hpp>
#include <ferry/loader/epoch_times.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <vector>

namespace ferry::detail {

/// The slots of a prefetcher and whose turn they are. Batch k lies in slot k % depth and passes these
/// counters, which begin at the first batch, and none of which is ever above the one before it:
///
///   claimed   workers have begun to make it      (by a worker)
///   ready     it was made, and its transfer is enqueued; in order
///   served    next() has returned it             (by the user's thread)
///   released  next() was called again            (by the user's thread)
///   retired   the user's work on it has ended, so its slot is free
///
/// A worker claims only below retired + depth: that is the back-pressure. All members are guarded by `guard`,
/// except the contents of a slot, which belong to the thread whose turn it is.
struct slot_ring {
  using clock = slot::clock;

  struct epoch_clock {
    epoch_times times;
    clock::time_point begin;
  };

  slot_ring(const batch_order& epoch_order, std::size_t depth)
      : order(epoch_order),
        first(epoch_order.first()),
        first_epoch(epoch_order.epoch_of_first()),
        batches(epoch_order.all_batches()),
        slots(depth) {}

  [[nodiscard]] slot& of(std::int64_t batch) { return slots[static_cast<std::size_t>(batch) % slots.size()]; }
  [[nodiscard]] bool stops() const { return stop.load(std::memory_order_relaxed); }
  /// True if the next batch in order was made.
  [[nodiscard]] bool next_is_made() { return ready < claimed && of(ready).is_made; }
  /// True if a worker may begin a batch.
  [[nodiscard]] bool may_claim() const {
    return !failed && claimed < batches && claimed < retired + static_cast<std::int64_t>(slots.size());
  }

  [[nodiscard]] epoch_clock& clock_of(std::int64_t batch) {
    const std::int64_t epoch = order.epoch_of(batch);
    const auto place = static_cast<std::size_t>(epoch - first_epoch);
    if (clocks.size() <= place) clocks.resize(place + 1);
    clocks[place].times.epoch = epoch;
    return clocks[place];
  }

  /// Frees the slot of the oldest released batch.
  void retire() {
    slot& free = of(retired);
    const auto now = clock::now();
    clock_of(free.number).times.step += seconds(now - std::max(free.served, last_retired));
    last_retired = now;
    free.arrived = nullptr;
    free.released = nullptr;
    ++retired;
    is_free.notify_all();
  }

  static double seconds(clock::duration time) { return std::chrono::duration<double>(time).count(); }

  const batch_order order;
  const std::int64_t first;        ///< batch: that of a new run is 0
  const std::int64_t first_epoch;  ///< its epoch
  const std::int64_t batches;      ///< batches of all epochs
  std::vector<slot> slots;

  mutable std::mutex guard;
  std::condition_variable is_free;   ///< for the workers: a slot is free
  std::condition_variable changed;   ///< for the mover: a batch was made or released
  std::condition_variable is_ready;  ///< for the user: a batch is ready
  std::int64_t claimed = first, ready = first, served = first, released = first, retired = first;
  bool failed = false;  ///< whether a source has thrown: no further batch is begun
  bool closed = false;
  std::exception_ptr broken;  ///< why the mover has given up
  std::atomic<bool> stop{false};
  std::vector<epoch_clock> clocks;
  clock::time_point last_retired{};
};

}  // namespace ferry::detail
