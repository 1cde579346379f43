// SPDX-License-Identifier: Apache-2.0
#include <ferry/loader/detail/pipeline.hpp>

#include "mover.hpp"
#include "slot_ring.hpp"

#include "../runtime/processors.hpp"
#include "../runtime/worker_pool.hpp"

#include <ferry/error.hpp>
#include <ferry/runtime/trace.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace ferry::detail {

namespace {

/// The clock's time overflows soon after a century.
constexpr std::chrono::milliseconds longest_wait = std::chrono::hours(24 * 365 * 100);

struct leaving_next {
  std::atomic<bool>& flag;
  ~leaving_next() { flag = false; }
};

void wait_for_work_on(access_tracker& accesses) noexcept {
  try {
    accesses.wait_for_all();
  } catch (const std::exception& lost) {
    std::fprintf(stderr, "ferry: %s\n", lost.what());
  }
}

}  // namespace

class pipeline::inside {
 public:
  inside(std::unique_ptr<lane> way, std::unique_ptr<batch_maker> maker, slot_layout layout,
         const batch_order& order, const prefetch_options& options, std::size_t depth,
         std::int64_t batches_held)
      : layout_(std::move(layout)),
        options_(options),
        batches_held_(batches_held),
        maker_(std::move(maker)),
        lane_(std::move(way)),
        ring_(order, depth),
        mover_(ring_, *lane_, layout_),
        processors_(processor_set::of_process()) {
    for (std::size_t i = 0; i < depth; ++i) lane_->place(ring_.slots[i], i);
    const int threads = options.workers + (lane_->travels() ? 1 : 0);
    for (int i = 0; i < threads; ++i) threads_.push_back(std::make_unique<worker_thread>(processors_));
    // Nothing throws from here on.
    for (int i = 0; i < options.workers; ++i)
      threads_[static_cast<std::size_t>(i)]->begin(
          [](void* self, int worker) noexcept { static_cast<inside*>(self)->work(worker); }, this, i);
    if (lane_->travels())
      threads_.back()->begin([](void* self, int) noexcept { static_cast<inside*>(self)->mover_.run(); }, this,
                             0);
  }
  inside(const inside&) = delete;
  inside& operator=(const inside&) = delete;

  pulled pull(bool may_block, slot*& got) {
    if (in_next_.exchange(true))
      throw invalid_argument(order().message(
          "two threads call next() at the same time, but a batch is valid only until the next call; give each thread a prefetcher of its own with rank and ranks"));
    const leaving_next back{in_next_};
    lane_->require_usable();
    release();
    return take(may_block, got);
  }
  void throw_finding() {
    lane_->require_usable();
    if (const auto error = lane_->take_finding()) std::rethrow_exception(error);
  }
  void order_after(const slot& batch) {
    if (batch.arrived != nullptr) lane_->order(*batch.arrived);
  }
  [[nodiscard]] bool has_ended() const { return ring_.served == ring_.batches; }
  [[nodiscard]] std::int64_t position() const { return ring_.served; }

  void close() noexcept {
    {
      const std::lock_guard lock(ring_.guard);
      if (std::exchange(ring_.closed, true)) return;
      ring_.stop.store(true, std::memory_order_relaxed);
    }
    say_epochs_left();
    ring_.is_free.notify_all();
    ring_.changed.notify_all();
    ring_.is_ready.notify_all();
    for (const auto& thread : threads_) thread->wait();
    threads_.clear();
    for (slot& member : ring_.slots) {
      wait_for_work_on(*member.host_accesses);
      wait_for_work_on(*member.device_accesses);
    }
    lane_->close();
    for (slot& member : ring_.slots) member.arrived = member.released = nullptr;
  }

  [[nodiscard]] const slot_layout& layout() const { return layout_; }
  [[nodiscard]] const batch_order& order() const { return ring_.order; }
  [[nodiscard]] std::size_t depth() const { return ring_.slots.size(); }

  [[nodiscard]] std::vector<epoch_times> times() const {
    std::vector<epoch_times> epochs;
    const std::lock_guard lock(ring_.guard);
    for (const auto& epoch : ring_.clocks) {
      epochs.push_back(epoch.times);
      epochs.back().load /= options_.workers;
    }
    return epochs;
  }

 private:
  using clock = slot::clock;

  /// A loop that took the end of an epoch for that of all epochs trains less than it should.
  void say_epochs_left() const noexcept {
    const bool ends_epoch =
        ring_.served > ring_.first && announced_end_ == ring_.served && ring_.served < ring_.batches;
    if (!ends_epoch || options_.epochs == 0 || std::uncaught_exceptions() > 0) return;
    const std::int64_t left = (ring_.batches - ring_.served) / order().batches();
    try {
      std::fprintf(stderr, "%s\n",
                   (order().message("it ends with ") + std::to_string(left) + " of " +
                    std::to_string(options_.epochs) +
                    " epochs left. next() is empty at the end of every epoch, so loop over the epochs, too; "
                    "epochs = 0 has no last epoch and says nothing")
                       .c_str());
    } catch (const std::exception&) {  // no memory for the text
    }
  }

  /// Gives the oldest batch back.
  void release() {
    std::unique_lock lock(ring_.guard);
    if (ring_.closed)
      throw invalid_argument(order().message(
          "Kokkos was finalized, which stops its prefetchers; end the loop before Kokkos::finalize"));
    if (ring_.served - ring_.released < batches_held_) return;
    slot& batch_slot = ring_.of(ring_.released);
    lock.unlock();
    batch_slot.released = lane_->mark();
    if (!lane_->travels()) batch_slot.host_accesses->wait_for_all();
    lock.lock();
    ++ring_.released;
    if (lane_->travels())
      ring_.changed.notify_one();
    else
      ring_.retire();
  }

  pulled take(bool may_block, slot*& batch_slot) {
    std::optional<trace_region> waiting;  // ends after the lock
    std::unique_lock lock(ring_.guard);
    const auto begin = clock::now();
    const std::int64_t number = ring_.served;
    const bool ends = number > ring_.first && number % order().batches() == 0 && announced_end_ != number;
    if (ends || number == ring_.batches) {
      if (ends) {
        auto& last = ring_.clock_of(number - 1);
        last.times.wall = slot_ring::seconds(begin - last.begin);
      }
      announced_end_ = number;
      return pulled::end;
    }
    const auto is_there = [&] { return ring_.ready > number || ring_.broken != nullptr || ring_.closed; };
    if (!may_block && !is_there()) return pulled::nothing;
    waiting.emplace("ferry::loader::wait");
    if (options_.timeout.count() == 0)
      ring_.is_ready.wait(lock, is_there);
    else if (!ring_.is_ready.wait_for(lock, std::min(options_.timeout, longest_wait), is_there))
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
    batch_slot = &got;
    return pulled::batch;
  }

  /// The life of a worker.
  void work(int worker) noexcept {
    std::vector<std::byte*> data(layout_.fields.size());
    std::unique_lock lock(ring_.guard);
    while (true) {
      ring_.is_free.wait(lock, [this] { return ring_.stops() || ring_.may_claim(); });
      if (ring_.stops()) return;
      slot& batch_slot = ring_.of(ring_.claimed);
      batch_slot.number = ring_.claimed++;
      batch_slot.is_made = false;
      batch_slot.failure = nullptr;
      lock.unlock();
      const auto begin = clock::now();
      try {
        const trace_region making("ferry::loader::make");
        order().list(batch_slot.number, batch_slot.samples);
        for (std::size_t i = 0; i < data.size(); ++i) data[i] = batch_slot.host + layout_.fields[i].offset;
        maker_->make({order().epoch_of(batch_slot.number), batch_slot.number % order().batches(),
                      batch_slot.samples, worker, &ring_.stop},
                     data.data());
      } catch (...) {
        batch_slot.failure = std::current_exception();
      }
      lock.lock();
      ring_.clock_of(batch_slot.number).times.load += slot_ring::seconds(clock::now() - begin);
      batch_slot.is_made = true;
      if (batch_slot.failure != nullptr) ring_.failed = true;
      if (lane_->travels()) {
        ring_.changed.notify_one();
      } else {
        while (ring_.next_is_made()) ++ring_.ready;
        ring_.is_ready.notify_all();
      }
    }
  }

  slot_layout layout_;
  prefetch_options options_;
  std::int64_t batches_held_;
  std::unique_ptr<batch_maker> maker_;
  std::unique_ptr<lane> lane_;
  slot_ring ring_;
  batch_mover mover_;
  std::int64_t announced_end_ = 0;  ///< number of the batch before which next() has told that an epoch ended
  std::atomic<bool> in_next_{false};
  processor_set processors_;
  std::vector<std::unique_ptr<worker_thread>> threads_;  ///< the workers, then the mover
};

pipeline::pipeline(std::unique_ptr<lane> way, std::unique_ptr<batch_maker> maker, slot_layout layout,
                   const batch_order& order, const prefetch_options& options, std::size_t depth,
                   std::int64_t batches_held)
    : inside_(std::make_unique<inside>(std::move(way), std::move(maker), std::move(layout), order, options,
                                       depth, batches_held)) {}
pipeline::~pipeline() { close(); }

pulled pipeline::pull(bool may_block, slot*& got) {
  require_own_process();
  return inside_->pull(may_block, got);
}

slot* pipeline::next() {
  throw_finding();
  slot* got = nullptr;
  if (pull(true, got) != pulled::batch) return nullptr;
  order_after(*got);
  return got;
}

void pipeline::throw_finding() {
  require_own_process();
  inside_->throw_finding();
}

void pipeline::order_after(const slot& batch) { inside_->order_after(batch); }
bool pipeline::has_ended() const { return inside_->has_ended(); }
std::int64_t pipeline::position() const { return inside_->position(); }

void pipeline::close() noexcept {
  if (in_own_process()) inside_->close();
}

const slot_layout& pipeline::layout() const { return inside_->layout(); }
const batch_order& pipeline::order() const { return inside_->order(); }
std::size_t pipeline::depth() const { return inside_->depth(); }

std::vector<epoch_times> pipeline::times() const {
  require_own_process();
  return inside_->times();
}

void pipeline::require_own_process() const {
  if (!in_own_process())
    throw invalid_argument(order().message(
        "this process was forked from the one that made it and has none of its threads; make the prefetcher after the fork"));
}

}  // namespace ferry::detail
