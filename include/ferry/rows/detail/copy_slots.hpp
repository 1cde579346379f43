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

/// The numbers that decide the rate of a copy through slots; the backend's tuning has the defaults.
struct slot_tuning {
  std::int64_t slot_bytes;
  int workers;
  int slots;                ///< of a worker
  bool fills_past_caches;   ///< host threads write slots past the caches
  bool drains_past_caches;  ///< host threads write the destination past the caches

  template <class Exec>
  static slot_tuning of(const Exec& exec) {
    const auto& tuning = execution_backend<Exec>::tuning(exec);
    return {tuning.copy_slot_bytes, tuning.copy_workers, tuning.copy_slots, tuning.copy_fills_past_caches,
            tuning.copy_drains_past_caches};
  }
};

/// Page-locked slots by which host threads and the device's transfer engine exchange the items of a list.
/// Each worker of a team, the calling thread among them, has slots of its own and takes piece after piece: it
/// fills a slot and enqueues the slot's transfer on the verb's instance, or the other way round. Nothing on
/// the device waits for the host, so workers may wait for the device inside of its driver.
///
/// Unlike the staging ring's, these slots are large: DMA has to amortise an event and the gap after each
/// transfer, but takes no multiprocessors and reaches the rate of the link.
template <class Exec>
class copy_slots {
 public:
  copy_slots(launch_context<Exec>& call, const std::string& label, std::int64_t items,
             std::int64_t item_bytes, const slot_tuning& how, copy_meter& meter)
      : context_(call), label_(label), items_(items), item_bytes_(item_bytes), meter_(meter) {
    const int threads = std::max(1, static_cast<int>(Kokkos::DefaultHostExecutionSpace().concurrency()));
    workers_ = std::clamp(how.workers, 1, threads);
    // Small copies are shared evenly, in pieces that are worth a transfer.
    const std::int64_t usual = std::max<std::int64_t>(1, how.slot_bytes / item_bytes);
    const std::int64_t least = std::max<std::int64_t>(1, std::min(how.slot_bytes, smallest) / item_bytes);
    const std::int64_t fair = items / (std::int64_t{2} * workers_) + 1;
    per_slot_ = std::min(std::clamp(fair, least, usual), items);
    if (fair < usual && item_bytes < alignment && per_slot_ < items)
      per_slot_ = (per_slot_ * item_bytes + alignment - 1) / alignment * alignment / item_bytes;
    const std::int64_t pieces = (items + per_slot_ - 1) / per_slot_;
    workers_ = static_cast<int>(std::min<std::int64_t>(workers_, pieces));
    team_.hire(workers_ - 1, threads);
    workers_ = 1 + team_.helpers();
    depth_ = std::clamp<std::int64_t>(how.slots, 1, (pieces + workers_ - 1) / workers_);
    slot_bytes_ = (per_slot_ * item_bytes + alignment - 1) / alignment * alignment;
    slots_ = call.template pinned<std::byte>(workers_ * depth_ * slot_bytes_);
    ends_.resize(static_cast<std::size_t>(workers_ * depth_));
    for (auto& event : ends_) event = call.event_to_record();
    requests_.resize(ends_.size());
  }

  /// fill(slot, first, count) packs items into a slot; send(slot, first, count) enqueues their transfer to
  /// the device. Returns when the last transfer is enqueued.
  template <class Fill, class Send>
  void to_device(const Fill& fill, const Send& send) {
    const transfer_region region(device_space::name, nullptr, pinned_space::name, slots_, bytes(items_),
                                 label_);
    share([&](int worker, front_queue& queue) {
      std::int64_t turn = 0;
      for (std::int64_t first = 0, count = 0; queue.take(first, count); ++turn) {
        if (turn >= depth_) wait(worker, turn);
        if (given_up_) return;
        std::byte* const slot = slot_of(worker, turn);
        fill(slot, first, count);
        send(slot, first, count);
        record(worker, turn);
        advance(worker, count);
      }
    });
  }

  /// fetch(slot, first, count) enqueues the transfer of items from the device; drain(slot, first, count)
  /// takes them. Returns when the last item is drained.
  template <class Fetch, class Drain>
  void from_device(const Fetch& fetch, const Drain& drain) {
    const transfer_region region(pinned_space::name, slots_, device_space::name, nullptr, bytes(items_),
                                 label_);
    share([&](int worker, front_queue& queue) {
      std::int64_t posted = 0;
      const auto ask = [&] {
        auto& [first, count] = requests_[place_of(worker, posted)];
        if (!queue.take(first, count)) return false;
        fetch(slot_of(worker, posted), first, count);
        record(worker, posted++);
        return true;
      };
      while (posted < depth_ && ask()) {
      }
      for (std::int64_t drained = 0; drained < posted; ++drained) {
        wait(worker, drained);
        if (given_up_) return;
        const auto [first, count] = requests_[place_of(worker, drained)];
        drain(slot_of(worker, drained), first, count);
        static_cast<void>(ask());
        advance(worker, count);
      }
    });
  }

 private:
  static constexpr std::int64_t smallest = std::int64_t{1} << 18;
  static constexpr std::int64_t alignment = 4096;

  template <class Work>
  void share(const Work& work) {
    front_queue queue(items_, per_slot_);
    team_.run([&](int worker) {
      try {
        work(worker, queue);
      } catch (...) {
        given_up_ = true;
        throw;
      }
    });
    team_.dismiss();
  }

  void record(int worker, std::int64_t turn) {
    if constexpr (!is_host_exec<Exec>)
      execution_backend<Exec>::record_at(context_.exec(), *end_of(worker, turn));
  }
  /// Waits for the last transfer of a slot.
  void wait(int worker, std::int64_t turn) {
    if constexpr (!is_host_exec<Exec>) end_of(worker, turn)->wait();
  }
  void advance(int worker, std::int64_t items) {
    const std::int64_t now = completed_.fetch_add(items, std::memory_order_relaxed) + items;
    if (worker == 0) meter_.advance(bytes(now));
  }

  [[nodiscard]] std::size_t bytes(std::int64_t items) const {
    return static_cast<std::size_t>(items * item_bytes_);
  }
  [[nodiscard]] std::size_t place_of(int worker, std::int64_t turn) const {
    return static_cast<std::size_t>(worker * depth_ + turn % depth_);
  }
  [[nodiscard]] auto& end_of(int worker, std::int64_t turn) { return ends_[place_of(worker, turn)]; }
  [[nodiscard]] std::byte* slot_of(int worker, std::int64_t turn) const {
    return slots_ + static_cast<std::int64_t>(place_of(worker, turn)) * slot_bytes_;
  }

  launch_context<Exec>& context_;
  const std::string& label_;
  std::int64_t items_;
  std::int64_t item_bytes_;
  copy_meter& meter_;
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
