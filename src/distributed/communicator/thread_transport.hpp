// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/communication_error.hpp>
#include <ferry/distributed/communicator/communicator.hpp>
#include <ferry/distributed/communicator/detail/transport.hpp>
#include <ferry/error.hpp>
#include <ferry/memory/detail/function_ref.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace ferry::detail {

/// A condition variable for threads that mostly arrive together: a waiter watches for a moment before it
/// sleeps, because a thread that slept wakes up some ten microseconds late. Every change of what the waiters
/// wait for is made under the mutex and followed by notify_all() under the same lock.
class watched_condition {
 public:
  /// Watches only if each of `threads` threads may have a processor.
  explicit watched_condition(int threads)
      : watches_(std::thread::hardware_concurrency() >= static_cast<unsigned>(threads)) {}

  /// Locks the mutex. Threads that meet want it at once, each for less than a microsecond: one that slept for
  /// it would come late to the next meeting, too.
  [[nodiscard]] std::unique_lock<std::mutex> lock(std::mutex& guard) const {
    std::unique_lock<std::mutex> ownership(guard, std::defer_lock);
    take(ownership);
    return ownership;
  }
  void notify_all() noexcept {
    changes_.fetch_add(1, std::memory_order_relaxed);
    sleepers_.notify_all();
  }
  /// May return early, as that of std::condition_variable.
  std::cv_status wait_until(std::unique_lock<std::mutex>& lock, std::chrono::steady_clock::time_point until) {
    return watch(lock) ? std::cv_status::no_timeout : sleepers_.wait_until(lock, until);
  }
  template <class Predicate>
  void wait(std::unique_lock<std::mutex>& lock, const Predicate& holds) {
    while (!holds())
      if (!watch(lock)) sleepers_.wait(lock);
  }

 private:
  static constexpr std::chrono::microseconds moment{50};

  void take(std::unique_lock<std::mutex>& ownership) const {
    if (watches_)
      for (const auto until = std::chrono::steady_clock::now() + moment;
           std::chrono::steady_clock::now() < until;)
        if (ownership.try_lock()) return;
    ownership.lock();
  }
  /// True if something changed since the call. The last look is under the lock, so no change is missed.
  bool watch(std::unique_lock<std::mutex>& ownership) {
    if (!watches_) return false;
    const std::uint64_t known = changes_.load(std::memory_order_relaxed);
    ownership.unlock();
    const auto until = std::chrono::steady_clock::now() + moment;
    while (changes_.load(std::memory_order_relaxed) == known && std::chrono::steady_clock::now() < until)
      continue;
    take(ownership);
    return changes_.load(std::memory_order_relaxed) != known;
  }

  const bool watches_;
  std::atomic<std::uint64_t> changes_{0};
  std::condition_variable sleepers_;
};

/// Threads of one process. Ranks meet under a mutex; the last one that arrives compares the notes and ends
/// the round for all. Data is copied from the sender's memory by the receiver, outside of the mutex: by the
/// calling thread, or on the receiver's device after the work that the sender has published.
class thread_transport final : public transport {
 public:
  thread_transport(int ranks, std::chrono::nanoseconds deadline,
                   std::unique_ptr<const rank_devices> devices = nullptr);

  [[nodiscard]] int size() const override { return static_cast<int>(seats_.size()); }
  [[nodiscard]] int first_local() const override { return 0; }
  [[nodiscard]] int local_count() const override { return size(); }
  [[nodiscard]] std::string_view name() const override { return "threads"; }

  void all_gather(int rank, const call_note& note, std::span<const std::byte> part,
                  std::byte* parts) override;
  void exchange(int rank, const call_note& note, std::span<const outgoing_part> outgoing,
                std::span<const incoming_part> incoming) override {
    exchange_by(rank, note, outgoing, incoming, nullptr);
  }
  [[nodiscard]] bool shares_addresses() const override { return true; }
  void exchange_devices(int rank, const call_note& note, std::span<const outgoing_part> outgoing,
                        std::span<const incoming_part> incoming, device_lane& lane) override {
    exchange_by(rank, note, outgoing, incoming, &lane);
  }
  void end_reads(int rank, const call_note& note, const char* failed, std::span<const std::byte> mine,
                 std::byte* theirs) override;
  void fail(int rank, const call_note& note, const char* message) noexcept override;
  void abort(int rank, const char* message) noexcept override;
  void enter(int rank) override;
  void leave(int rank, bool for_good) noexcept override;
  [[nodiscard]] bool is_occupied() const override;
  void recover() noexcept override;
  [[nodiscard]] const rank_devices* devices() const override { return devices_.get(); }
  [[nodiscard]] std::uint64_t next_number(int rank) override;

 private:
  using clock = std::chrono::steady_clock;

  /// The part of a rank in a round. Pointers are into the frame of its call, which does not end before the
  /// round has ended, or the rank has withdrawn from it under the mutex.
  struct seat {
    bool occupied = false;
    bool gone = false;  ///< a thread acted for it and has left
    bool has_come = false;
    bool reached = false;
    bool reads = false;  ///< it may read memory of others, as it has not called since the last round
    call_note note;      ///< of the call that it is in, or of its last one
    std::uint64_t calls = 0;
    std::uint64_t numbers = 0;
    std::span<const std::byte> part;
    std::span<const outgoing_part> outgoing;
    std::span<const incoming_part> incoming;
    device_lane* lane = nullptr;  ///< if `outgoing` and `incoming` lie in memory of devices
    bool failed = false;
    failure_text said;
  };

  void bring(seat& own_seat, std::span<const std::byte> part, const char* failed);
  void exchange_by(int rank, const call_note& note, std::span<const outgoing_part> outgoing,
                   std::span<const incoming_part> incoming, device_lane* lane);
  void copy_parts(int rank, std::span<const incoming_part> incoming, device_lane* lane);
  void meet(std::unique_lock<std::mutex>& lock, int rank, const call_note& note);
  std::exception_ptr end_round(int rank);
  void break_by(group_trouble::kind kind, function_ref<std::string()> text) noexcept;
  [[nodiscard]] std::string text_of_leaving(int rank) const;
  void throw_failed(int rank) const;
  [[nodiscard]] std::string who_reached_what() const;
  seat& seat_of(int rank) { return seats_[static_cast<std::size_t>(rank)]; }

  mutable std::mutex guard_;
  watched_condition changed_;
  std::vector<seat> seats_;
  const std::chrono::nanoseconds deadline_;
  const std::unique_ptr<const rank_devices> devices_;
  std::uint64_t round_ = 0;
  int arrived_ = 0;
  int readers_ = 0;  ///< ranks that may still read memory of others after an exchange
  // The last round, until the next one ends.
  std::vector<std::byte> gathered_;
  int failed_rank_ = -1;
  failure_text failed_said_;
  group_trouble trouble_;
};

}  // namespace ferry::detail
