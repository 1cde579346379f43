#pragma once

#include <ferry/memory/detail/event.hpp>
#include <ferry/memory/detail/tools.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/rows/detail/ring_parts.hpp>
#include <ferry/rows/detail/ring_producer.hpp>
#include <ferry/rows/detail/serve_ring.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/runtime/detail/work_queue.hpp>
#include <ferry/runtime/detail/worker_team.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace ferry::detail {

/// Page-locked slots by which a worker team of host threads and a kernel exchange the items of a list: a worker fills a slot
/// and posts it, a team of the kernel moves it to where it belongs on the device, or the other way round. Each worker
/// has a few slots and a team of its own, so that neither waits while the other works; all slots together stay in
/// the host's cache. The list occupies the calling thread, which is one of the workers, until its last item is
/// posted (towards the device) or drained (from it). Reported to Kokkos Tools as one transfer, of the whole list.
///
/// The kernel reads slots over the link rather than have DMA carry them: handing a piece to DMA, with an event for
/// its end, takes the host some microseconds, and the engine rests a few more between two. 128-byte rows arrive at 0.7
/// of the link's rate so, against 0.5 (H200, PCIe 5, 16 threads).
///
/// The callbacks must not wait for what is enqueued behind the kernel, nor enqueue anything there: a full queue takes
/// nothing until the kernel ends, which waits for them.
///
/// The callbacks work on the host's side of a slot by way of an execution space, the calling thread of a worker,
/// that they pass on to launch(). A host backend has no link to overlap with: there the instance itself works, slot
/// after slot.
template <class Exec>
class ring {
 public:
  /// Slots hold whole items, of at most the tuning's bytes where an item is no larger, and are smaller where
  /// `workers` would not all find work; with 0 the calling thread does without other threads. The kernel goes
  /// to `side_stream`.
  ring(launch_context<Exec>& of, const Exec& side_stream, std::string label, std::int64_t items,
       std::int64_t item_bytes, int workers)
      : context_(of),
        side_stream_(side_stream),
        items_(items),
        bytes_(static_cast<std::size_t>(items * item_bytes)) {
    progress_.label = std::move(label);
    constexpr auto tuning = execution_backend<Exec>::tuning();
    static_assert(tuning.ring_slot_bytes <= words::depth * tuning.dma_run_bytes,
                  "ferry: what lies between the runs of one piece must fit the slots of one worker");
    [[maybe_unused]] int threads = 1;
    if constexpr (!is_host_exec<Exec>) {
      threads = std::max(1, static_cast<int>(Kokkos::DefaultHostExecutionSpace().concurrency()));
      workers_ = std::clamp(workers, 1, threads);
    }
    const std::int64_t usual = tuning.ring_slot_bytes;
    const std::int64_t item = std::max<std::int64_t>(1, item_bytes);
    const std::int64_t fair = items / (std::int64_t{3} * workers_);
    const std::int64_t least = std::min((smallest_slot + item - 1) / item, enough_items);
    per_slot_ = std::min(std::max<std::int64_t>(1, usual / item), std::max(fair, least));
    per_slot_ = std::clamp<std::int64_t>(per_slot_, 1, std::max<std::int64_t>(1, items));
    slot_bytes_ = (per_slot_ * item_bytes + slot_alignment - 1) / slot_alignment * slot_alignment;
    // Items larger than a slot leave room for fewer workers, so that the ring does not outgrow the cache by more than
    // they do.
    const std::int64_t room =
        std::max<std::int64_t>(1, workers_ * usual / std::max<std::int64_t>(1, slot_bytes_));
    const std::int64_t found = std::max<std::int64_t>(1, (items + per_slot_ - 1) / per_slot_);
    workers_ = static_cast<int>(std::min({std::int64_t{workers_}, room, found}));
    if constexpr (!is_host_exec<Exec>) {
      // A single worker has somebody else launch the kernel, see below.
      if (found > 1) team_.hire(workers > 0 ? std::max(1, workers_ - 1) : 0, threads);
      progress_.alone = alone_ = team_.helpers() == 0;
      workers_ = std::min(workers_, 1 + team_.helpers());
    }
    depth_ = std::min<std::int64_t>(words::depth, std::max<std::int64_t>(1, items));
    slots_ = of.template pinned<std::byte>(workers_ * depth_ * slot_bytes_);
    words_ = of.template pinned<words>(workers_);
    end_ = of.event_to_record();
    for (int w = 0; w < workers_; ++w) words_[w].posted = words_[w].done = words_[w].begun = 0;
  }

  /// Items that a slot holds.
  [[nodiscard]] std::int64_t per_slot() const { return per_slot_; }

  /// For the callbacks: until the device has written a number other than 0 to a word in page-locked memory.
  /// Throws device_error where that will never be; `by` is a point in the device's work by which it is.
  void await(std::int64_t& word, event* by) {
    const std::atomic_ref<std::int64_t> at(word);
    if (at.load(std::memory_order_acquire) != 0) return;
    progress_.awaited.store(by, std::memory_order_release);
    if (!progress_.await([&] { return at.load(std::memory_order_acquire) != 0; }))
      throw device_error("ferry: " + progress_.label + " was given up");
  }

  /// For each piece of the queue, `parts(first, count, visit)` visits what goes by way of the ring. Of that,
  /// fill(here, slot, first, count) packs the items into a slot and says whether any has no row; the mover takes them
  /// from there to the device.
  template <class Queue, class Mover, class Parts, class Fill>
  void to_device(Queue& queue, const Mover& mover, const Parts& parts, const Fill& fill) {
    const transfer_region region(device_space::name, nullptr, pinned_space::name, slots_, bytes_,
                                 progress_.label);
    share(mover, [&](int worker, ring_producer& own) {
      queued_parts<Queue, Parts> rest(queue, parts);
      for (post next{0, 0, 0}; rest.take(next);) {
        if (alone_ && own.posted() == depth_) {
          own.end();
          serve(mover);
          start_over(own);
        }
        std::byte* slot = slot_of(worker, own.posted());
        if (!is_host_exec<Exec> && !own.await(own.posted() - depth_ + 1)) return;
        next.holes = fill(here(), slot, next.first, next.count) ? 1 : 0;
        settle();
        own.post_next(next);
        serve_here(mover, slot, next);
      }
    });
  }
  template <class Mover, class Parts, class Fill>
  void to_device(const Mover& mover, const Parts& parts, const Fill& fill) {
    front_queue queue(items_, per_slot_);
    to_device(queue, mover, parts, fill);
  }

  /// The other way: the mover brings the items to a slot, then drain(here, slot, first, count) takes them on.
  template <class Queue, class Mover, class Parts, class Drain>
  void from_device(Queue& queue, const Mover& mover, const Parts& parts, const Drain& drain) {
    const transfer_region region(pinned_space::name, slots_, device_space::name, nullptr, bytes_,
                                 progress_.label);
    share(mover, [&](int worker, ring_producer& own) {
      queued_parts<Queue, Parts> rest(queue, parts);
      if (alone_) return drain_alone(mover, rest, own, drain);
      post asked[words::depth];
      std::int64_t drained = 0;
      const auto ask = [&] {
        post& next = asked[own.posted() % depth_];
        if (!rest.take(next)) return false;
        std::byte* slot = slot_of(worker, own.posted());
        own.post_next(next);
        serve_here(mover, slot, next);
        return true;
      };
      while (own.posted() < depth_ && ask()) {
      }
      for (; drained < own.posted(); ++drained) {
        if (!is_host_exec<Exec> && !own.await(drained + 1)) return;
        const post& now = asked[drained % depth_];
        drain(here(), slot_of(worker, drained), now.first, now.count);
        settle();
        static_cast<void>(ask());
      }
    });
  }
  template <class Mover, class Parts, class Drain>
  void from_device(const Mover& mover, const Parts& parts, const Drain& drain) {
    front_queue queue(items_, per_slot_);
    from_device(queue, mover, parts, drain);
  }

 private:
  using words = kernels::ring_words;
  using post = kernels::ring_post;

  static constexpr std::int64_t smallest_slot = std::int64_t{1} << 17;
  static constexpr std::int64_t enough_items = 1024;  // for one worker to be busy with
  static constexpr std::int64_t slot_alignment = 256;

  template <class Mover, class Work>
  void share(const Mover& mover, const Work& work) {
    const auto as_worker = [&](int worker) {
      try {
        ring_producer own(progress_, words_[worker]);
        if (own.begin()) work(worker, own);
      } catch (...) {
        cancel_unstarted_workers();
        if (progress_.give_up()) throw;  // the others end because of that
      }
      cancel_unstarted_workers();
    };
    const auto launch_or_give_up = [&] {
      try {
        serve(mover);
      } catch (...) {
        cancel_unstarted_workers();
        if (progress_.give_up()) throw;
      }
    };
    try {
      if (is_host_exec<Exec> || alone_) {
        as_worker(0);
        if (!launched_) serve(mover);
      } else if (workers_ == 1) {
        // Launches may block until the kernel ends, so the only worker must not be the one who launches.
        team_.run([&](int thread) { thread == 0 ? as_worker(0) : launch_or_give_up(); });
      } else {
        team_.run([&](int worker) {
          if (worker == 0) launch_or_give_up();
          as_worker(worker);
        });
      }
    } catch (...) {
      progress_.stop();
      throw;
    }
    team_.dismiss();
    progress_.end();
  }

  /// The calling thread alone posts what there is room for, then launches a kernel that ends with it, so that
  /// nobody has to work meanwhile.
  template <class Mover, class Rest, class Drain>
  void drain_alone(const Mover& mover, Rest& rest, ring_producer& own, const Drain& drain) {
    post asked[words::depth];
    for (post next{0, 0, 0}; rest.take(next);) {
      if (launched_) start_over(own);
      do {
        asked[own.posted()] = next;
        own.post_next(next);
      } while (own.posted() < depth_ && rest.take(next));
      own.end();
      serve(mover);
      for (std::int64_t k = 0; k < own.posted(); ++k) {
        if (!own.await(k + 1)) return;
        drain(here(), slot_of(0, k), asked[k].first, asked[k].count);
      }
    }
  }
  /// Once the kernel has ended.
  void start_over(ring_producer& own) {
    if (end_ != nullptr) end_->wait();
    progress_.end();
    own.start_over();
    launched_ = false;
  }

  /// A worker who has ended leaves nothing to do for those who have not begun yet, perhaps because their thread is
  /// launching the kernel and the launch blocks until it ends. So it says for them that there will be no posts.
  void cancel_unstarted_workers() {
    for (int worker = 0; worker < workers_; ++worker) ring_producer::end_unless_begun(words_[worker]);
  }

  template <class Mover>
  void serve([[maybe_unused]] const Mover& mover) {
    if constexpr (!is_host_exec<Exec>) {
      using kernel = kernels::serve_ring<Exec, Mover>;
      execution_backend<Exec>::launch_blocks(
          side_stream_, workers_, execution_backend<Exec>::tuning().ordered_team_size,
          kernel{mover, words_, slots_, slot_bytes_, static_cast<int>(depth_)});
      launched_ = true;
      execution_backend<Exec>::record_at(side_stream_, *end_);
      progress_.served.store(end_.get(), std::memory_order_release);
    }
  }

  /// A host backend's turn as the device.
  template <class Mover>
  void serve_here([[maybe_unused]] const Mover& mover, [[maybe_unused]] std::byte* slot,
                  [[maybe_unused]] const post& next) {
    if constexpr (is_host_exec<Exec>) {
      launch(context_.exec(), progress_.label, next.count * mover.units(),
             kernels::serve_post<Mover>{mover, slot, next});
      context_.exec().fence(progress_.label);
    }
  }

  [[nodiscard]] auto here() const {
    if constexpr (is_host_exec<Exec>)
      return context_.exec();
    else
      return caller_thread{};
  }
  /// The host's share of a piece has ended.
  void settle() const {
    if constexpr (is_host_exec<Exec>) context_.exec().fence(progress_.label);
  }

  [[nodiscard]] std::byte* slot_of(int worker, std::int64_t turn) const {
    return slots_ + (worker * depth_ + turn % depth_) * slot_bytes_;
  }

  launch_context<Exec>& context_;
  const Exec& side_stream_;
  std::int64_t items_;
  std::size_t bytes_;
  std::int64_t per_slot_ = 1;
  std::int64_t slot_bytes_ = 0;
  int workers_ = 1;
  std::int64_t depth_ = 1;  ///< slots of a worker
  bool alone_ = false;      ///< no helpers: one piece at most, or no thread to be had
  std::byte* slots_ = nullptr;
  words* words_ = nullptr;
  bool launched_ = false;
  std::shared_ptr<typename execution_backend<Exec>::native_event> end_;  ///< of the kernel; null on a host
  ring_progress progress_;
  worker_team team_;
};

}  // namespace ferry::detail
