// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/memory/detail/event.hpp>
#include <ferry/memory/detail/tools.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/rows/detail/ring_progress.hpp>
#include <ferry/rows/detail/serve_ring.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/runtime/detail/parallel.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace ferry::detail {

/// Page-locked slots by which a worker team of host threads and a kernel exchange the items of a list. A
/// worker fills a slot and posts it, and a team of the kernel moves the items to device memory, or the other
/// way round. Each worker has a few slots and its own team, so that both sides work at the same time. All
/// slots together fit into the host's cache. The list occupies the calling thread, one of the workers, until
/// its last item is posted (towards the device) or drained (from it). Kokkos Tools see one transfer.
///
/// The kernel reads slots over the link instead of DMA: a DMA transfer with its event costs the host
/// microseconds, and its engine idles after each: 128-byte rows at 0.5 of the link's rate, not 0.7 (H200).
///
/// The callbacks must neither enqueue work after the kernel nor wait for such work: a full queue blocks until
/// the kernel ends, and the kernel waits for the callbacks. They work on the execution space that they are
/// passed: the worker's thread, or on a host backend the instance, which serves slot after slot.
template <class Exec>
class ring {
 public:
  /// A slot holds whole items, of at most the tuning's bytes unless one item is larger; slots are smaller
  /// if `workers` would not all find work. With `workers` 0 the calling thread works alone. The kernel
  /// runs on `side_stream`.
  ring(launch_context<Exec>& call, const Exec& side_stream, std::string label, std::int64_t items,
       std::int64_t item_bytes, int workers)
      : context_(call),
        side_stream_(side_stream),
        items_(items),
        bytes_(static_cast<std::size_t>(items * item_bytes)) {
    progress_.label = std::move(label);
    const auto& tuning = execution_backend<Exec>::tuning(call.exec());
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
    // Items larger than the usual slot reduce the number of workers, so that the ring outgrows the cache by
    // no more than the items do.
    const std::int64_t room =
        std::max<std::int64_t>(1, workers_ * usual / std::max<std::int64_t>(1, slot_bytes_));
    const std::int64_t pieces = std::max<std::int64_t>(1, (items + per_slot_ - 1) / per_slot_);
    workers_ = static_cast<int>(std::min({std::int64_t{workers_}, room, pieces}));
    if constexpr (!is_host_exec<Exec>) {
      // A single worker needs another thread to launch the kernel, see below.
      if (pieces > 1) team_.hire(workers > 0 ? std::max(1, workers_ - 1) : 0, threads);
      progress_.alone = alone_ = team_.helpers() == 0;
      workers_ = std::min(workers_, 1 + team_.helpers());
    }
    depth_ = std::min<std::int64_t>(words::depth, std::max<std::int64_t>(1, items));
    slots_ = call.template pinned<std::byte>(workers_ * depth_ * slot_bytes_);
    words_ = call.template pinned<words>(workers_);
    end_ = call.event_to_record();
    for (int w = 0; w < workers_; ++w) words_[w].posted = words_[w].completions = words_[w].begun = 0;
  }

  /// Items that a slot holds.
  [[nodiscard]] std::int64_t per_slot() const { return per_slot_; }

  /// For the callbacks: waits until the device has set a word in page-locked memory. `point` is a point in
  /// the device's work after the word is set. Throws device_error if the word can no longer be set.
  void await(std::int64_t& word, event* point) {
    const std::atomic_ref<std::int64_t> flag(word);
    if (flag.load(std::memory_order_acquire) != 0) return;
    progress_.awaited.store(point, std::memory_order_release);
    if (!progress_.await([&] { return flag.load(std::memory_order_acquire) != 0; }))
      throw device_error(joined("ferry: ", progress_.label, " was given up"));
  }

  /// For each piece of the queue, `parts(first, count, visit)` visits the part that goes through the ring.
  /// fill(host, slot, first, count) packs its items into a slot and returns whether any has no row. The mover
  /// takes them to the device.
  template <class Queue, class Mover, class Parts, class Fill>
  void to_device(Queue& queue, const Mover& mover, const Parts& parts, const Fill& fill) {
    const transfer_region region(device_space::name, nullptr, pinned_space::name, slots_, bytes_,
                                 progress_.label);
    share(mover, [&](int worker, ring_producer& producer) {
      queued_parts<Queue, Parts> rest(queue, parts);
      for (post next{0, 0, 0}; rest.take(next);) {
        if (alone_ && producer.posted() == depth_) {
          producer.end();
          serve(mover);
          start_over(producer);
        }
        std::byte* slot = slot_of(worker, producer.posted());
        if (!is_host_exec<Exec> && !producer.await(producer.posted() - depth_ + 1)) return;
        next.holes = fill(host(), slot, next.first, next.count) ? 1 : 0;
        fence();
        producer.post_next(next);
        serve_by_host(mover, slot, next);
      }
    });
  }
  template <class Mover, class Parts, class Fill>
  void to_device(const Mover& mover, const Parts& parts, const Fill& fill) {
    front_queue queue(items_, per_slot_);
    to_device(queue, mover, parts, fill);
  }

  /// The other direction: the mover brings items to a slot, then drain(host, slot, first, count) takes them.
  template <class Queue, class Mover, class Parts, class Drain>
  void from_device(Queue& queue, const Mover& mover, const Parts& parts, const Drain& drain) {
    const transfer_region region(pinned_space::name, slots_, device_space::name, nullptr, bytes_,
                                 progress_.label);
    share(mover, [&](int worker, ring_producer& producer) {
      queued_parts<Queue, Parts> rest(queue, parts);
      if (alone_) return drain_alone(mover, rest, producer, drain);
      post requests[words::depth];
      std::int64_t drained = 0;
      const auto ask = [&] {
        post& next = requests[producer.posted() % depth_];
        if (!rest.take(next)) return false;
        std::byte* slot = slot_of(worker, producer.posted());
        producer.post_next(next);
        serve_by_host(mover, slot, next);
        return true;
      };
      while (producer.posted() < depth_ && ask()) {
      }
      for (; drained < producer.posted(); ++drained) {
        if (!is_host_exec<Exec> && !producer.await(drained + 1)) return;
        const post& now = requests[drained % depth_];
        drain(host(), slot_of(worker, drained), now.first, now.count);
        fence();
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
  static constexpr std::int64_t enough_items = 1024;  // per worker
  static constexpr std::int64_t slot_alignment = 256;

  template <class Mover, class Work>
  void share(const Mover& mover, const Work& work) {
    const auto as_worker = [&](int worker) {
      try {
        ring_producer producer(progress_, words_[worker]);
        if (producer.begin()) work(worker, producer);
      } catch (...) {
        cancel_unstarted_workers();
        if (progress_.give_up()) throw;  // the others stop because of that
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
        // Launches may block until the kernel ends, so the only worker must not launch.
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

  /// The calling thread posts until the slots are full, then launches a kernel that ends with these posts, so
  /// that nobody has to work meanwhile.
  template <class Mover, class Rest, class Drain>
  void drain_alone(const Mover& mover, Rest& rest, ring_producer& producer, const Drain& drain) {
    post requests[words::depth];
    for (post next{0, 0, 0}; rest.take(next);) {
      if (launched_) start_over(producer);
      do {
        requests[producer.posted()] = next;
        producer.post_next(next);
      } while (producer.posted() < depth_ && rest.take(next));
      producer.end();
      serve(mover);
      for (std::int64_t k = 0; k < producer.posted(); ++k) {
        if (!producer.await(k + 1)) return;
        drain(host(), slot_of(0, k), requests[k].first, requests[k].count);
      }
    }
  }
  /// Resets the ring after the kernel has ended.
  void start_over(ring_producer& producer) {
    if (end_ != nullptr) end_->wait();
    progress_.end();
    producer.start_over();
    launched_ = false;
  }

  /// Ends the posts of workers that have not begun: a finished worker has left them nothing to do, and their
  /// thread may be blocked in the kernel's launch.
  void cancel_unstarted_workers() {
    for (int worker = 0; worker < workers_; ++worker) ring_producer::end_unless_begun(words_[worker]);
  }

  template <class Mover>
  void serve([[maybe_unused]] const Mover& mover) {
    if constexpr (!is_host_exec<Exec>) {
      using kernel = kernels::serve_ring<Exec, Mover>;
      execution_backend<Exec>::launch_blocks(
          side_stream_, "ferry::next_to_host", workers_,
          execution_backend<Exec>::tuning(side_stream_).ordered_team_size,
          kernel{mover, words_, slots_, slot_bytes_, static_cast<int>(depth_)});
      launched_ = true;
      execution_backend<Exec>::record_at(side_stream_, *end_);
      progress_.served.store(end_.get(), std::memory_order_release);
    }
  }

  /// A host backend acts as the device.
  template <class Mover>
  void serve_by_host([[maybe_unused]] const Mover& mover, [[maybe_unused]] std::byte* slot,
                     [[maybe_unused]] const post& next) {
    if constexpr (is_host_exec<Exec>) {
      launch(context_.exec(), progress_.label, next.count * mover.units(),
             kernels::serve_post<Mover>{mover, slot, next});
      context_.exec().fence(progress_.label);
    }
  }

  [[nodiscard]] auto host() const {
    if constexpr (is_host_exec<Exec>)
      return context_.exec();
    else
      return caller_thread{};
  }
  /// Waits for the host's part of a piece.
  void fence() const {
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
  std::int64_t depth_ = 1;  ///< slots per worker
  bool alone_ = false;      ///< no helpers: one piece at most, or no thread can be started
  std::byte* slots_ = nullptr;
  words* words_ = nullptr;
  bool launched_ = false;
  std::shared_ptr<typename execution_backend<Exec>::native_event> end_;  ///< of the kernel; null on a host
  ring_progress progress_;
  worker_team team_;
};

}  // namespace ferry::detail
