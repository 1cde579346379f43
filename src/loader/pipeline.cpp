// SPDX-License-Identifier: Apache-2.0
#include <ferry/loader/detail/pipeline.hpp>

#include "../runtime/worker_pool.hpp"

#include <ferry/error.hpp>
#include <ferry/extend.hpp>
#include <ferry/loader/epoch_times.hpp>
#include <ferry/runtime/trace.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
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
namespace {

/// The clock's time overflows soon after a century.
constexpr std::chrono::milliseconds longest_wait = std::chrono::hours(24 * 365 * 100);

void wait_for_work_on(access_tracker& accesses) noexcept {
  try {
    accesses.wait_for_all();
  } catch (const std::exception& lost) {
    std::fprintf(stderr, "ferry: %s\n", lost.what());
  }
}

/// The slots of a prefetcher and whose turn they are. Batch k lies in slot k % depth and passes these
/// counters, which begin at the first batch, and none of which is ever above the one before it:
///
///   reserved  workers have begun to make it      (by a worker)
///   ready     it was made, and its transfer is enqueued; in order
///   served    next() has returned it             (by the user's thread)
///   released  next() was called again            (by the user's thread)
///   retired   the user's work on it has ended, so its slot is free
///
/// A worker reserves only below retired + depth: that is the back-pressure. All members are guarded by `guard`,
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
  [[nodiscard]] bool next_is_made() { return ready < reserved && of(ready).is_made; }
  /// True if a worker may begin a batch.
  [[nodiscard]] bool may_reserve() const {
    return !failed && reserved < batches && reserved < retired + static_cast<std::int64_t>(slots.size());
  }

  [[nodiscard]] epoch_clock& clock_of(std::int64_t batch) {
    const std::int64_t epoch = order.epoch_of(batch);
    const auto index = static_cast<std::size_t>(epoch - first_epoch);
    if (clocks.size() <= index) clocks.resize(index + 1);
    clocks[index].times.epoch = epoch;
    return clocks[index];
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
  std::int64_t reserved = first, ready = first, served = first, released = first, retired = first;
  bool failed = false;  ///< whether a source has thrown: no further batch is begun
  bool closed = false;
  std::exception_ptr broken;  ///< why the mover has given up
  std::atomic<bool> stop{false};
  std::vector<epoch_clock> clocks;
  clock::time_point last_retired{};
};

class ring_pipeline final : public pipeline {
 public:
  ring_pipeline(std::unique_ptr<copy_stream> stream, batch_maker maker, slot_layout layout,
                const batch_order& order, const prefetch_options& options, std::size_t depth,
                std::int64_t batches_held)
      : layout_(std::move(layout)),
        options_(options),
        batches_held_(batches_held),
        maker_(std::move(maker)),
        stream_(std::move(stream)),
        ring_(order, depth),
        transferred_(ring_.first),
        processors_(processor_set::of_process()) {
    for (std::size_t i = 0; i < depth; ++i) stream_->give_memory(ring_.slots[i], i);
    const int threads = options.workers + (stream_->travels() ? 1 : 0);
    for (int i = 0; i < threads; ++i) threads_.push_back(std::make_unique<worker_thread>(processors_));
    // Nothing throws from here on.
    for (int i = 0; i < options.workers; ++i)
      threads_[static_cast<std::size_t>(i)]->begin(
          [](void* self, int worker) noexcept { static_cast<ring_pipeline*>(self)->work(worker); }, this, i);
    if (stream_->travels())
      threads_.back()->begin([](void* self, int) noexcept { static_cast<ring_pipeline*>(self)->move(); },
                             this, 0);
  }
  ~ring_pipeline() override { close(); }

  pulled pull(bool may_block, slot*& got) override {
    require_own_process();
    if (in_next_.exchange(true))
      throw invalid_argument(order().message(
          "two threads call next() at the same time, but a batch is valid only until the next call; give each thread a prefetcher of its own with rank and ranks"));
    const leaving_next back{in_next_};
    stream_->require_usable();
    release();
    return take(may_block, got);
  }
  void throw_finding() override {
    require_own_process();
    stream_->require_usable();
    if (const auto error = stream_->take_finding()) std::rethrow_exception(error);
  }
  void order_after(const slot& batch) override {
    if (batch.arrived != nullptr) stream_->order(*batch.arrived);
  }
  [[nodiscard]] bool has_ended() const override { return ring_.served == ring_.batches; }
  [[nodiscard]] std::int64_t position() const override { return ring_.served; }

  void close() noexcept override {
    if (!in_own_process()) return;
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
    stream_->close();
    for (slot& member : ring_.slots) member.arrived = member.released = nullptr;
  }

  [[nodiscard]] const slot_layout& layout() const override { return layout_; }
  [[nodiscard]] const batch_order& order() const override { return ring_.order; }
  [[nodiscard]] std::size_t depth() const override { return ring_.slots.size(); }

  [[nodiscard]] std::vector<epoch_times> times() const override {
    require_own_process();
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

  void require_own_process() const {
    if (!in_own_process())
      throw invalid_argument(order().message(
          "this process was forked from the one that made it and has none of its threads; make the prefetcher after the fork"));
  }

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
    batch_slot.released = stream_->mark();
    if (!stream_->travels()) batch_slot.host_accesses->wait_for_all();
    lock.lock();
    ++ring_.released;
    if (stream_->travels())
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
      throw error(joined(order().message("batch "), number % order().batches(), " of epoch ",
                         order().epoch_of(number), " was not there within the timeout of ",
                         options_.timeout.count(), " ms"));
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
      ring_.is_free.wait(lock, [this] { return ring_.stops() || ring_.may_reserve(); });
      if (ring_.stops()) return;
      slot& batch_slot = ring_.of(ring_.reserved);
      batch_slot.number = ring_.reserved++;
      batch_slot.is_made = false;
      batch_slot.failure = nullptr;
      lock.unlock();
      const auto begin = clock::now();
      try {
        const trace_region making("ferry::loader::make");
        order().list(batch_slot.number, batch_slot.samples);
        for (std::size_t i = 0; i < data.size(); ++i) data[i] = batch_slot.host + layout_.fields[i].offset;
        maker_({order().epoch_of(batch_slot.number), batch_slot.number % order().batches(),
                batch_slot.samples, worker, &ring_.stop},
               data.data());
      } catch (...) {
        batch_slot.failure = std::current_exception();
      }
      lock.lock();
      ring_.clock_of(batch_slot.number).times.load += slot_ring::seconds(clock::now() - begin);
      batch_slot.is_made = true;
      if (batch_slot.failure != nullptr) ring_.failed = true;
      if (stream_->travels()) {
        ring_.changed.notify_one();
      } else {
        while (ring_.next_is_made()) ++ring_.ready;
        ring_.is_ready.notify_all();
      }
    }
  }

  /// The life of the mover, if batches travel: it enqueues the transfers in order and watches for the ends of
  /// transfers and of the user's work. It polls, because a thread that blocks on a device spins.
  void move() noexcept {
    std::unique_lock lock(ring_.guard);
    auto since = clock::now();
    while (!ring_.stops()) {
      try {
        const bool sent = send_made(lock);
        const bool ended = look_for_ends(lock);
        if (sent || ended) since = clock::now();
      } catch (...) {
        if (!lock.owns_lock()) lock.lock();
        ring_.broken = std::current_exception();
        ring_.is_ready.notify_all();
        return;
      }
      if (ring_.stops()) return;
      if (ring_.next_is_made()) continue;
      if (transferred_ < ring_.ready || ring_.retired < ring_.released) {
        // The longer nothing ends, the less it matters how soon the end is seen.
        using std::chrono::microseconds;
        const auto pause =
            std::clamp<clock::duration>((clock::now() - since) / 16, microseconds(10), microseconds(500));
        ring_.changed.wait_for(lock, pause);
      } else {
        ring_.changed.wait(
            lock, [this] { return ring_.stops() || ring_.next_is_made() || ring_.retired < ring_.released; });
        since = clock::now();
      }
    }
  }

  bool send_made(std::unique_lock<std::mutex>& lock) {
    bool any = false;
    for (; !ring_.stops() && ring_.next_is_made(); any = true) {
      slot& batch_slot = ring_.of(ring_.ready);
      if (batch_slot.failure == nullptr) {
        lock.unlock();
        batch_slot.sent = clock::now();
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
      return stream_->send(batch_slot, layout_, static_cast<std::int64_t>(batch_slot.samples.size()));
    } catch (...) {
      batch_slot.failure = std::current_exception();
      return 0;
    }
  }

  bool look_for_ends(std::unique_lock<std::mutex>& lock) {
    bool any = false;
    for (; transferred_ < ring_.ready; ++transferred_, any = true) {
      slot& batch_slot = ring_.of(transferred_);
      const event_handle end = batch_slot.arrived;
      lock.unlock();
      const bool ended = end == nullptr || end->ready();
      const auto begin = std::max(batch_slot.sent, last_transfer_), now = clock::now();
      lock.lock();
      if (!ended) break;
      if (end != nullptr) ring_.clock_of(batch_slot.number).times.transfer += slot_ring::seconds(now - begin);
      last_transfer_ = now;
    }
    for (; ring_.retired < std::min(ring_.released, transferred_); any = true) {
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

  slot_layout layout_;
  prefetch_options options_;
  std::int64_t batches_held_;
  batch_maker maker_;
  std::unique_ptr<copy_stream> stream_;
  slot_ring ring_;
  std::int64_t transferred_;  ///< batches whose transfer has ended
  clock::time_point last_transfer_{};
  std::int64_t announced_end_ =
      0;  ///< number of the batch before which next() has reported that an epoch ended
  std::atomic<bool> in_next_{false};
  processor_set processors_;
  std::vector<std::unique_ptr<worker_thread>> threads_;  ///< the workers, then the mover
};

}  // namespace

std::unique_ptr<pipeline> pipeline::make(std::unique_ptr<copy_stream> stream, batch_maker maker,
                                         slot_layout layout, const batch_order& order,
                                         const prefetch_options& options, std::size_t depth,
                                         std::int64_t batches_held) {
  return std::make_unique<ring_pipeline>(std::move(stream), std::move(maker), std::move(layout), order,
                                         options, depth, batches_held);
}

}  // namespace ferry::detail

namespace ferry {

std::string_view epoch_times::bottleneck() const {
  if (step >= load && step >= transfer) return "step";
  return load >= transfer ? "load" : "transfer";
}

std::string to_string(std::span<const epoch_times> epochs) {
  std::string text =
      " epoch  batches     samples   load s  transfer s   step s   wait s   wall s  bottleneck\n";
  for (const epoch_times& epoch : epochs) {
    char line[192];
    std::snprintf(line, sizeof line, "%6lld %8lld %11lld %8.3f %11.3f %8.3f %8.3f %8.3f  %s\n",
                  static_cast<long long>(epoch.epoch), static_cast<long long>(epoch.batches),
                  static_cast<long long>(epoch.samples), epoch.load, epoch.transfer, epoch.step, epoch.wait,
                  epoch.wall, epoch.bottleneck().data());
    text += line;
  }
  return text;
}

}  // namespace ferry
