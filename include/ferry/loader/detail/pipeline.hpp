// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/loader/batch_request.hpp>
#include <ferry/loader/detail/batch_order.hpp>
#include <ferry/loader/detail/closable.hpp>
#include <ferry/loader/detail/lane.hpp>
#include <ferry/loader/detail/mover.hpp>
#include <ferry/loader/detail/progress_bar.hpp>
#include <ferry/loader/detail/slot_ring.hpp>
#include <ferry/loader/detail/stage_trace.hpp>
#include <ferry/loader/epoch_times.hpp>
#include <ferry/loader/prefetch_options.hpp>
#include <ferry/memory/detail/late.hpp>
#include <ferry/memory/detail/owned.hpp>
#include <ferry/memory/detail/process_identity.hpp>
#include <ferry/memory/detail/trace_span.hpp>
#include <ferry/runtime/detail/processors.hpp>
#include <ferry/runtime/detail/worker_thread.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ferry::detail {

/// Makes a batch in the memory of a slot.
class batch_maker {
 public:
  batch_maker() = default;
  batch_maker(const batch_maker&) = delete;
  batch_maker& operator=(const batch_maker&) = delete;
  virtual ~batch_maker() = default;
  virtual void make(const batch_request& request, std::byte* const* data) const = 0;
};

/// What pipeline::pull has found.
enum class pulled {
  batch,
  end,     ///< of an epoch, or of the last one
  nothing  ///< the next batch is not ready
};

/// A prefetcher without its types: the ring, its workers and, where batches travel, its mover.
template <class Dependent>
class basic_pipeline final : public closable {
  using slot = late<detail::slot, Dependent>;
  using slot_ring = basic_slot_ring<Dependent>;
  using batch_mover = basic_mover<Dependent>;
  using lane = late<detail::lane, Dependent>;
  using batch_maker = late<detail::batch_maker, Dependent>;
  using slot_layout = late<detail::slot_layout, Dependent>;
  using batch_order = late<detail::batch_order, Dependent>;
  using worker_thread = late<detail::worker_thread, Dependent>;
  using trace_span = late<detail::trace_span, Dependent>;
  using access_tracker = late<detail::access_tracker, Dependent>;
  using prefetch_options = late<ferry::prefetch_options, Dependent>;
  using epoch_times = late<ferry::epoch_times, Dependent>;

 public:
  /// `held`: how many batches the user has at a time.
  basic_pipeline(owned<lane> way, owned<batch_maker> maker, slot_layout layout, const batch_order& order,
                 const prefetch_options& options, std::size_t depth, std::int64_t held = 1)
      : layout_(std::move(layout)),
        options_(options),
        held_(held),
        maker_(std::move(maker)),
        lane_(std::move(way)),
        ring_(order, options.first_epoch, depth),
        mover_(ring_, *lane_, layout_),
        bar_(options.progress),
        where_(processor_set::of_process()) {
    for (std::size_t i = 0; i < depth; ++i) lane_->place(ring_.slots[i], i);
    for (int i = 0; i < options.workers; ++i) threads_.push_back(make_owned<worker_thread>(where_));
    if (lane_->travels()) threads_.push_back(make_owned<worker_thread>(where_));
    // Nothing throws from here on.
    for (int i = 0; i < options.workers; ++i)
      threads_[static_cast<std::size_t>(i)]->begin(
          [](void* self, int worker) noexcept { static_cast<basic_pipeline*>(self)->work(worker); }, this, i);
    if (lane_->travels())
      threads_.back()->begin(
          [](void* self, int) noexcept { static_cast<basic_pipeline*>(self)->mover_.run(); }, this, 0);
  }
  basic_pipeline(const basic_pipeline&) = delete;
  basic_pipeline& operator=(const basic_pipeline&) = delete;
  ~basic_pipeline() override { close(); }

  /// The next batch in `got`, before any instance is ordered after its transfer. Gives the oldest one back
  /// where the user has `held` of them.
  pulled pull(bool may_block, slot*& got) {
    require_own_process();
    if (in_next_.exchange(true))
      throw invalid_argument(order().message(
          "two threads call next() at the same time, but a batch is valid only until the next call; give each thread a prefetcher of its own with rank and ranks"));
    const leaving back{in_next_};
    lane_->require_usable();
    release();
    return take(may_block, got);
  }
  /// The next batch, with later work of the user's instance ordered after it; null at the end of an epoch,
  /// and after the last one.
  slot* next() {
    throw_finding();
    slot* got = nullptr;
    if (pull(true, got) != pulled::batch) return nullptr;
    order_after(*got);
    return got;
  }
  /// The error of a detached step of the batch before, say.
  void throw_finding() {
    require_own_process();
    lane_->require_usable();
    if (const auto found = lane_->take_finding()) std::rethrow_exception(found);
  }
  void order_after(const slot& batch) {
    if (batch.arrived != nullptr) lane_->order(*batch.arrived);
  }
  /// Whether all batches were pulled.
  [[nodiscard]] bool has_ended() const { return ring_.served == ring_.all; }

  /// Stops and frees everything, after the source's calls in progress and the work on the slots. Then next()
  /// throws. Does nothing in a child process.
  void close() noexcept override {
    if (!in_own_process()) return;
    {
      const std::lock_guard lock(ring_.guard);
      if (std::exchange(ring_.closed, true)) return;
      ring_.stop.store(true, std::memory_order_relaxed);
    }
    ring_.is_free.notify_all();
    ring_.changed.notify_all();
    ring_.is_ready.notify_all();
    for (const auto& each : threads_) each->wait();
    threads_.clear();
    bar_.end();
    for (slot& each : ring_.slots) {
      wait_for(*each.host_accesses);
      wait_for(*each.device_accesses);
    }
    lane_->close();
    for (slot& each : ring_.slots) each.arrived = each.released = nullptr;
  }

  [[nodiscard]] const slot_layout& layout() const { return layout_; }
  [[nodiscard]] const batch_order& order() const { return ring_.order; }
  [[nodiscard]] std::size_t depth() const { return ring_.slots.size(); }

  [[nodiscard]] std::vector<epoch_times> times() const {
    require_own_process();
    std::vector<epoch_times> made;
    const std::lock_guard lock(ring_.guard);
    for (const auto& each : ring_.clocks) {
      made.push_back(each.times);
      made.back().load /= options_.workers;
    }
    return made;
  }

 private:
  using clock = typename slot::clock;

  struct leaving {
    std::atomic<bool>& flag;
    ~leaving() { flag = false; }
  };

  void require_own_process() const {
    if (!in_own_process())
      throw invalid_argument(order().message(
          "this process was forked from the one that made it and has none of its threads; make the prefetcher after the fork"));
  }
  /// Gives the oldest batch back.
  void release() {
    std::unique_lock lock(ring_.guard);
    if (ring_.closed)
      throw invalid_argument(order().message(
          "Kokkos was finalized, which stops its prefetchers; end the loop before Kokkos::finalize"));
    if (ring_.served - ring_.released < held_) return;
    slot& of = ring_.of(ring_.released);
    lock.unlock();
    of.released = lane_->mark();
    if (!lane_->travels()) of.host_accesses->wait_for_all();
    lock.lock();
    ++ring_.released;
    if (lane_->travels())
      ring_.changed.notify_one();
    else
      ring_.retire();
  }

  pulled take(bool may_block, slot*& to) {
    std::optional<trace_span> waiting;  // ends after the lock
    std::unique_lock lock(ring_.guard);
    const auto begin = clock::now();
    const std::int64_t number = ring_.served;
    const bool ends = number > 0 && number % order().batches() == 0 && told_ != number;
    if (ends || number == ring_.all) {
      if (ends) {
        auto& last = ring_.clock_of(number - 1);
        last.times.wall = slot_ring::seconds(begin - last.begin);
      }
      told_ = number;
      bar_.end();
      return pulled::end;
    }
    const auto is_there = [&] { return ring_.ready > number || ring_.broken != nullptr || ring_.closed; };
    if (!may_block && !is_there()) return pulled::nothing;
    waiting.emplace("ferry::loader::", "wait", loader_category);
    if (options_.timeout.count() == 0)
      ring_.is_ready.wait(lock, is_there);
    else if (!ring_.is_ready.wait_for(lock, options_.timeout, is_there))
      throw error(order().message("batch ") + std::to_string(number % order().batches()) + " of epoch " +
                  std::to_string(order().epoch_of(number)) + " was not there within the timeout of " +
                  std::to_string(options_.timeout.count()) + " ms");
    if (ring_.closed) throw invalid_argument(order().message("it was stopped while next() waited"));
    if (ring_.ready == number) std::rethrow_exception(ring_.broken);
    slot& got = ring_.of(number);
    if (got.failure != nullptr) std::rethrow_exception(got.failure);
    ++ring_.served;
    got.served = clock::now();
    auto& now = ring_.clock_of(number);
    if (now.times.batches == 0) now.begin = begin;
    ++now.times.batches;
    now.times.samples += static_cast<std::int64_t>(got.samples.size());
    now.times.wait += slot_ring::seconds(got.served - begin);
    now.times.wall = slot_ring::seconds(got.served - now.begin);
    bar_.show(now.times, order().batches());
    note_batch(*waiting, order().epoch_of(number), number % order().batches(), got);
    to = &got;
    return pulled::batch;
  }

  /// The life of a worker.
  void work(int worker) noexcept {
    std::vector<std::byte*> data(layout_.fields.size());
    std::unique_lock lock(ring_.guard);
    while (true) {
      ring_.is_free.wait(lock, [this] { return ring_.stops() || ring_.may_claim(); });
      if (ring_.stops()) return;
      slot& of = ring_.of(ring_.claimed);
      of.number = ring_.claimed++;
      of.made = false;
      of.failure = nullptr;
      lock.unlock();
      const auto begin = clock::now();
      try {
        trace_span making("ferry::loader::", "make", loader_category);
        order().list(of.number, of.samples);
        note_batch(making, order().epoch_of(of.number), of.number % order().batches(), of);
        for (std::size_t i = 0; i < data.size(); ++i) data[i] = of.host + layout_.fields[i].offset;
        maker_->make(
            {order().epoch_of(of.number), of.number % order().batches(), of.samples, worker, &ring_.stop},
            data.data());
      } catch (...) {
        of.failure = std::current_exception();
      }
      lock.lock();
      ring_.clock_of(of.number).times.load += slot_ring::seconds(clock::now() - begin);
      of.made = true;
      if (of.failure != nullptr) ring_.failed = true;
      if (lane_->travels()) {
        ring_.changed.notify_one();
      } else {
        while (ring_.next_is_made()) ++ring_.ready;
        ring_.is_ready.notify_all();
      }
    }
  }

  static void wait_for(access_tracker& accesses) noexcept {
    try {
      accesses.wait_for_all();
    } catch (const std::exception& lost) {
      std::fprintf(stderr, "ferry: %s\n", lost.what());
    }
  }

  slot_layout layout_;
  prefetch_options options_;
  std::int64_t held_;
  owned<batch_maker> maker_;
  owned<lane> lane_;
  slot_ring ring_;
  batch_mover mover_;
  progress_bar bar_;
  std::int64_t told_ = 0;  ///< number of the batch before which next() has told that an epoch ended
  std::atomic<bool> in_next_{false};
  processor_set where_;
  std::vector<owned<worker_thread>> threads_;  ///< the workers, then the mover
};
using pipeline = basic_pipeline<void>;

}  // namespace ferry::detail
