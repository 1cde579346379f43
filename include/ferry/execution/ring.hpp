#pragma once

#include <ferry/execution/call.hpp>
#include <ferry/execution/claims.hpp>
#include <ferry/execution/crew.hpp>
#include <ferry/execution/spin_lock.hpp>
#include <ferry/memory/event.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>

namespace ferry::detail {

/// Page-locked slots, two for each worker of a crew, so that a worker fills or drains one while DMA works on the
/// other. All slots together stay in the host's cache. A stream of pieces occupies the calling thread, which is
/// one of the workers, until its last piece is enqueued (towards the device) or drained (from it).
///
/// The callbacks work on the host's side of a slot by way of an execution space, the calling thread of a worker,
/// that they pass on to launch(); what they enqueue on the device goes to `lane`. One lane: with two and more, the
/// engine of the device leaves its gaps all the same, and pieces were slower by a fifth (H200).
///
/// DMA works from the first piece that is ready to the last. So a worker's first piece is the smaller the lower its
/// number, which has DMA begin early and the workers out of step, and the last ones are small for all, see piece_sizes.
/// A host backend has no DMA to overlap with: there the instance itself works, slot after slot.
template <class Exec>
class ring {
 public:
  /// Slots hold whole items, of at most the tuning's bytes where an item is no larger, and are smaller where
  /// `workers` would not all find work.
  ring(call<Exec>& of, const Exec& lane, std::string label, std::int64_t items, std::int64_t item_bytes,
       int workers)
      : call_(of), lane_(lane), label_(std::move(label)), items_(items) {
    if constexpr (!is_host_exec<Exec>) workers_ = crew_size(host_side(of.exec()), workers);
    const std::int64_t usual = execution_backend<Exec>::tuning().staging_slot_bytes;
    const std::int64_t item = std::max<std::int64_t>(1, item_bytes);
    const std::int64_t fair = items / (std::int64_t{3} * workers_);
    least_ = (smallest_piece + item - 1) / item;
    per_slot_ = std::min(std::max<std::int64_t>(1, usual / item), std::max(fair, least_));
    per_slot_ = std::clamp<std::int64_t>(per_slot_, 1, std::max<std::int64_t>(1, items));
    slot_bytes_ = per_slot_ * item_bytes;
    // Items larger than a slot leave room for fewer workers, so that the ring does not outgrow the cache by more than
    // they do.
    const std::int64_t room =
        std::max<std::int64_t>(1, workers_ * usual / std::max<std::int64_t>(1, slot_bytes_));
    const std::int64_t found = std::max<std::int64_t>(1, (items + per_slot_ - 1) / per_slot_);
    workers_ = static_cast<int>(std::min({std::int64_t{workers_}, room, found}));
    least_ = std::min(least_, per_slot_);
    slots_ = of.template pinned<std::byte>(2 * workers_ * slot_bytes_);
  }

  /// Items that a slot holds.
  [[nodiscard]] std::int64_t per_slot() const { return per_slot_; }
  /// How a list for this ring's workers is shared.
  [[nodiscard]] piece_sizes pieces() const { return {per_slot_, least_, workers_}; }

  /// fill(here, slot, first, count) on the host, then send(slot, first, count) enqueues what reads the slot.
  template <class Claims, class Fill, class Send>
  void to_device(Claims& claims, const Fill& fill, const Send& send) {
    crew([&](int worker) {
      std::array<event_handle, 2> busy{};
      std::int64_t first = 0, count = 0;
      bool begun = false;
      for (std::size_t turn = 0; claims.take(most_of(worker, begun), first, count); turn ^= 1) {
        std::byte* slot = slot_of(worker, turn);
        begun = true;
        if (busy[turn] != nullptr) busy[turn]->wait();
        on_host(fill, slot, first, count);
        const std::lock_guard lock(enqueuing_);
        send(slot, first, count);
        busy[turn] = call_.mark(lane_);
      }
    });
  }
  template <class Fill, class Send>
  void to_device(const Fill& fill, const Send& send) {
    front_claims claims(items_, pieces());
    to_device(claims, fill, send);
  }

  /// fetch(slot, first, count) enqueues what fills the slot, then drain(here, slot, first, count) on the host.
  template <class Claims, class Fetch, class Drain>
  void from_device(Claims& claims, const Fetch& fetch, const Drain& drain) {
    crew([&](int worker) {
      struct piece {
        std::int64_t first = 0, count = 0;
        event_handle filled;
      };
      std::array<piece, 2> pieces;
      bool begun = false;
      const auto begin = [&](std::size_t turn) {
        piece& next = pieces[turn];
        next.count = 0;
        if (!claims.take(most_of(worker, begun), next.first, next.count)) return;
        begun = true;
        const std::lock_guard lock(enqueuing_);
        fetch(slot_of(worker, turn), next.first, next.count);
        next.filled = call_.mark(lane_);
      };
      begin(0);
      for (std::size_t turn = 0; pieces[turn].count != 0; turn ^= 1) {
        begin(turn ^ 1);
        const piece& now = pieces[turn];
        if (now.filled != nullptr) now.filled->wait();
        on_host(drain, slot_of(worker, turn), now.first, now.count);
      }
    });
  }
  template <class Fetch, class Drain>
  void from_device(const Fetch& fetch, const Drain& drain) {
    front_claims claims(items_, pieces());
    from_device(claims, fetch, drain);
  }

 private:
  static constexpr std::int64_t smallest_piece = std::int64_t{1} << 16;

  /// Items of a worker's next piece, at most.
  [[nodiscard]] std::int64_t most_of(int worker, bool begun) const {
    return begun ? per_slot_ : std::max(least_, per_slot_ * (worker + 1) / workers_);
  }

  template <class Work>
  void crew(const Work& work) {
    if constexpr (is_host_exec<Exec>) {
      work(0);
    } else {
      run_crew(host_side(call_.exec()), label_, workers_, [&](int worker) {
        if (worker != 0) execution_backend<Exec>::enter_thread(call_.exec());
        work(worker);
      });
    }
  }

  template <class Task>
  void on_host(const Task& task, std::byte* slot, std::int64_t first, std::int64_t count) {
    if constexpr (is_host_exec<Exec>) {
      task(call_.exec(), slot, first, count);
      call_.exec().fence(label_);
    } else {
      task(caller_thread{}, slot, first, count);
    }
  }

  [[nodiscard]] std::byte* slot_of(int worker, std::size_t turn) const {
    return slots_ + (2 * worker + static_cast<std::int64_t>(turn)) * slot_bytes_;
  }

  call<Exec>& call_;
  const Exec& lane_;
  std::string label_;
  std::int64_t items_;
  std::int64_t per_slot_ = 1;
  std::int64_t least_ = 1;
  std::int64_t slot_bytes_ = 0;
  int workers_ = 1;
  std::byte* slots_ = nullptr;
  spin_lock enqueuing_;
};

}  // namespace ferry::detail
