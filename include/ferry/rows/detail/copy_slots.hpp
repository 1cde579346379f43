// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/event.hpp>
#include <ferry/memory/detail/tools.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/rows/copy_progress.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/runtime/detail/parallel.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace ferry::detail {

/// The numbers that decide the rate of a list through slots; the backend's tuning has the defaults.
struct slot_tuning {
  std::int64_t slot_bytes;
  int workers;
  int slots;                ///< of a worker
  bool fills_past_caches;   ///< host threads write slots past the caches
  bool drains_past_caches;  ///< host threads write the destination past the caches

  /// The numbers of a copy.
  template <class Exec>
  static slot_tuning of(const Exec& exec) {
    const auto& tuning = execution_backend<Exec>::tuning(exec);
    return {tuning.copy_slot_bytes, tuning.copy_workers, tuning.copy_slots, tuning.copy_fills_past_caches,
            tuning.copy_drains_past_caches};
  }
  /// The numbers for rows that a batch names.
  template <class Exec>
  static slot_tuning of_rows(const Exec& exec) {
    const auto& tuning = execution_backend<Exec>::tuning(exec);
    return {tuning.row_slot_bytes, tuning.row_workers, tuning.copy_slots, false, false};
  }
};

/// A list whose items go through slots.
struct slot_items {
  const std::string& label;
  std::int64_t count;
  std::int64_t bytes;           ///< of an item
  copy_meter* meter = nullptr;  ///< takes reports of the progress
};

/// Page-locked slots by which host threads and the device exchange the items of a list. Each worker of a
/// team, the calling thread among them, has slots of its own and takes piece after piece: it fills a slot and
/// enqueues the slot's transfer, or a kernel that reads it over the link, or the other way round. Nothing on
/// the device waits for the host, so workers may wait for the device inside of its driver. Several workers
/// enqueue at the same time: kernels by launch_blocks, since Kokkos launches for one thread of an instance.
template <class Exec>
class copy_slots {
 public:
  /// The device's side is enqueued on `stream`.
  copy_slots(launch_context<Exec>& call, const slot_items& items, const slot_tuning& how, const Exec& stream)
      : stream_(stream), items_(items) {
    const int threads = std::max(1, static_cast<int>(Kokkos::DefaultHostExecutionSpace().concurrency()));
    workers_ = std::clamp(how.workers, 1, threads);
    // Small lists are shared evenly, in pieces that are worth a transfer.
    const std::int64_t full_slot = std::max<std::int64_t>(1, how.slot_bytes / items.bytes);
    const std::int64_t least =
        std::max<std::int64_t>(1, std::min(how.slot_bytes / 8, smallest) / items.bytes);
    const std::int64_t equal_share = items.count / (std::int64_t{2} * workers_) + 1;
    per_slot_ = std::min(std::clamp(equal_share, least, full_slot), items.count);
    if (equal_share < full_slot && items.bytes < alignment && per_slot_ < items.count)
      per_slot_ = (per_slot_ * items.bytes + alignment - 1) / alignment * alignment / items.bytes;
    const std::int64_t pieces = (items.count + per_slot_ - 1) / per_slot_;
    // Larger items reduce the number of workers, so that slots outgrow the usual ones by no more than items.
    if (items.bytes > how.slot_bytes)
      workers_ = static_cast<int>(std::max<std::int64_t>(1, workers_ * how.slot_bytes / items.bytes));
    workers_ = static_cast<int>(std::min<std::int64_t>(workers_, pieces));
    // Long items: no more slots than usual ones would take memory.
    if (const std::int64_t piece = per_slot_ * items.bytes; piece > how.slot_bytes)
      workers_ = static_cast<int>(
          std::min<std::int64_t>(workers_, std::max<std::int64_t>(2, workers_ * how.slot_bytes / piece)));
    team_.hire(workers_ - 1, threads);
    workers_ = 1 + team_.helpers();
    depth_ = std::clamp<std::int64_t>(how.slots, 1, (pieces + workers_ - 1) / workers_);
    slot_bytes_ = (per_slot_ * items.bytes + alignment - 1) / alignment * alignment;
    slots_ = call.template pinned<std::byte>(workers_ * depth_ * slot_bytes_);
    ends_.resize(static_cast<std::size_t>(workers_ * depth_));
    for (auto& event : ends_) event = call.event_to_record();
    requests_.resize(ends_.size());
  }

  /// Items that a slot holds, at most.
  [[nodiscard]] std::int64_t per_slot() const { return per_slot_; }

  /// fill(slot, first, count) packs items into a slot; send(slot, first, count) enqueues their transfer to
  /// the device. Returns when the last transfer is enqueued.
  template <class Fill, class Send>
  void to_device(const Fill& fill, const Send& send) {
    front_queue queue(items_.count, per_slot_);
    to_device(queue, fill, send);
  }
  /// Items that `queue` gives, likewise.
  template <class Queue, class Fill, class Send>
  void to_device(Queue& queue, const Fill& fill, const Send& send) {
    const transfer_region region(device_space::name, nullptr, pinned_space::name, slots_, bytes(items_.count),
                                 items_.label);
    share([&](int worker) {
      std::int64_t number = 0;
      for (std::int64_t first = 0, count = 0; queue.take(first, count); ++number) {
        if (number >= depth_) wait(worker, number);
        if (given_up_) return;
        std::byte* const slot = slot_of(worker, number);
        fill(slot, first, count);
        send(slot, first, count);
        record(worker, number);
        advance(worker, count);
      }
    });
  }

  /// fetch(slot, first, count) enqueues the transfer of items from the device; drain(slot, first, count)
  /// takes them. Returns when the last item is drained.
  template <class Fetch, class Drain>
  void from_device(const Fetch& fetch, const Drain& drain) {
    front_queue queue(items_.count, per_slot_);
    from_device(queue, fetch, drain);
  }
  /// Items that `queue` gives, likewise.
  template <class Queue, class Fetch, class Drain>
  void from_device(Queue& queue, const Fetch& fetch, const Drain& drain) {
    const transfer_region region(pinned_space::name, slots_, device_space::name, nullptr, bytes(items_.count),
                                 items_.label);
    share([&](int worker) {
      std::int64_t posted = 0;
      const auto request = [&] {
        auto& [first, count] = requests_[index_of(worker, posted)];
        if (!queue.take(first, count)) return false;
        fetch(slot_of(worker, posted), first, count);
        record(worker, posted++);
        return true;
      };
      while (posted < depth_ && request()) {
      }
      for (std::int64_t drained = 0; drained < posted; ++drained) {
        wait(worker, drained);
        if (given_up_) return;
        const auto [first, count] = requests_[index_of(worker, drained)];
        drain(slot_of(worker, drained), first, count);
        static_cast<void>(request());
        advance(worker, count);
      }
    });
  }

 private:
  static constexpr std::int64_t smallest = std::int64_t{1} << 18;
  static constexpr std::int64_t alignment = 4096;

  template <class Work>
  void share(const Work& work) {
    team_.run([&](int worker) {
      try {
        work(worker);
      } catch (...) {
        given_up_ = true;
        throw;
      }
    });
    team_.dismiss();
  }

  void record(int worker, std::int64_t number) {
    if constexpr (!is_host_exec<Exec>)
      execution_backend<Exec>::record_at(stream_, *ends_[index_of(worker, number)]);
  }
  /// Waits for the last transfer of a slot.
  void wait(int worker, std::int64_t number) {
    if constexpr (!is_host_exec<Exec>) ends_[index_of(worker, number)]->wait();
  }
  void advance(int worker, std::int64_t items) {
    if (items_.meter == nullptr) return;
    const std::int64_t total = completed_.fetch_add(items, std::memory_order_relaxed) + items;
    if (worker == 0) items_.meter->advance(bytes(total));
  }

  [[nodiscard]] std::size_t bytes(std::int64_t items) const {
    return static_cast<std::size_t>(items * items_.bytes);
  }
  [[nodiscard]] std::size_t index_of(int worker, std::int64_t number) const {
    return static_cast<std::size_t>(worker * depth_ + number % depth_);
  }
  [[nodiscard]] std::byte* slot_of(int worker, std::int64_t number) const {
    return slots_ + static_cast<std::int64_t>(index_of(worker, number)) * slot_bytes_;
  }

  const Exec& stream_;
  slot_items items_;
  std::int64_t per_slot_ = 1;
  std::int64_t slot_bytes_ = 0;
  std::int64_t depth_ = 1;  ///< slots of a worker
  int workers_ = 1;
  std::byte* slots_ = nullptr;
  std::vector<std::shared_ptr<typename execution_backend<Exec>::native_event>> ends_;  ///< null on a host
  std::vector<std::pair<std::int64_t, std::int64_t>> requests_;  ///< items in each slot, from the device
  std::atomic<bool> given_up_{false};
  std::atomic<std::int64_t> completed_{0};
  worker_team team_;
};

}  // namespace ferry::detail
