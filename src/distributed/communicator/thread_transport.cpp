// SPDX-License-Identifier: Apache-2.0
#include <ferry/distributed/communicator/communication_error.hpp>
#include <ferry/distributed/communicator/communicator.hpp>
#include <ferry/distributed/communicator/detail/transport.hpp>
#include <ferry/error.hpp>
#include <ferry/memory/detail/function_ref.hpp>

#include <algorithm>
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
#include <utility>
#include <vector>

namespace ferry::detail {

namespace {

/// A condition variable for threads that mostly arrive together: a waiter watches for a moment before it
/// sleeps, because a thread that slept wakes up some ten microseconds late. Every change of what the waiters
/// wait for is made under the mutex and followed by notify_all() under the same lock.
class watched_condition {
 public:
  /// Watches only if each of `threads` threads may have a processor.
  explicit watched_condition(int threads)
      : watches_(std::thread::hardware_concurrency() >= static_cast<unsigned>(threads)) {}

  /// Locks the mutex. Threads of a round want it at once, each for less than a microsecond: one that slept for
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

/// Threads of one process. Ranks join a round under a mutex; the last one that arrives compares the notes and ends
/// the round for all. Data is copied from the sender's memory by the receiver, outside of the mutex: by the
/// calling thread, or on the receiver's device after the work that the sender has published.
class thread_transport final : public transport {
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

 public:
  thread_transport(int ranks, std::chrono::nanoseconds deadline, std::unique_ptr<const rank_devices> devices)
      : changed_(ranks),
        seats_(static_cast<std::size_t>(ranks)),
        deadline_(deadline),
        devices_(std::move(devices)) {}

  [[nodiscard]] int size() const override { return static_cast<int>(seats_.size()); }
  [[nodiscard]] int first_local() const override { return 0; }
  [[nodiscard]] int local_count() const override { return size(); }
  [[nodiscard]] std::string_view name() const override { return "threads"; }
  [[nodiscard]] bool shares_addresses() const override { return true; }
  [[nodiscard]] const rank_devices* devices() const override { return devices_.get(); }

  void all_gather(int rank, const call_note& note, std::span<const std::byte> part,
                  std::byte* parts) override {
    std::unique_lock lock = changed_.lock(guard_);
    bring(seat_of(rank), part, nullptr);
    join_round(lock, rank, note);
    throw_failed(rank);
    if (!gathered_.empty()) std::memcpy(parts, gathered_.data(), gathered_.size());
  }

  void exchange(int rank, const call_note& note, std::span<const outgoing_part> outgoing,
                std::span<const incoming_part> incoming, device_lane* lane) override {
    std::unique_lock lock = changed_.lock(guard_);
    seat& own_seat = seat_of(rank);
    if (!own_seat.has_come) {
      own_seat.part = {};
      own_seat.outgoing = outgoing;
      own_seat.incoming = incoming;
      own_seat.lane = lane;
      own_seat.failed = false;
    }
    join_round(lock, rank, note);
    throw_failed(rank);
    // From here no rank leaves before all have read, also if the group breaks meanwhile: copying ends.
    lock.unlock();
    std::exception_ptr lost;
    try {
      copy_parts(rank, incoming, lane);
    } catch (...) {
      lost = std::current_exception();
      if (lane != nullptr) lane->abandon();
      with_message_of(lost, [&](const char* message) { abort(rank, message); });
    }
    lock = changed_.lock(guard_);
    if (--readers_ == 0) changed_.notify_all();
    const std::uint64_t round = round_;
    changed_.wait(lock, [&] { return readers_ == 0 || round_ != round; });
    if (lost != nullptr) std::rethrow_exception(lost);
    if (trouble_.is_broken()) trouble_.fail();  // another rank lacks what it should have got
  }

  void end_reads(int rank, const call_note& note, const char* failed, std::span<const std::byte> mine,
                 std::byte* theirs) override {
    std::unique_lock lock = changed_.lock(guard_);
    bring(seat_of(rank), mine, failed);
    try {
      join_round(lock, rank, note);
    } catch (...) {
      // Without a deadline: what the others read must not go away.
      changed_.wait(lock, [&] {
        for (const seat& other_seat : seats_)
          if (other_seat.reads) return false;
        return true;
      });
      throw;
    }
    if (failed != nullptr) return;
    throw_failed(rank);
    if (!gathered_.empty()) std::memcpy(theirs, gathered_.data(), gathered_.size());
  }

  void fail(int rank, const call_note& note, const char* message) noexcept override {
    try {
      std::unique_lock lock(guard_);
      seat& own_seat = seat_of(rank);
      if (own_seat.has_come) return;
      bring(own_seat, {}, message);
      join_round(lock, rank, note);
    } catch (...) {
      // The others learn of it by the break that was thrown here; the caller throws its own error.
    }
  }

  void abort(int rank, const char* message) noexcept override {
    const std::lock_guard lock(guard_);
    break_by(group_trouble::kind::peer, [&] { return text_of_abort(rank, message); });
  }

  void enter(int rank) override {
    const std::lock_guard lock(guard_);
    if (rank < 0 || rank >= size())
      throw out_of_range("ferry::communicator: there is no rank " + std::to_string(rank) + " of " +
                         std::to_string(size()));
    seat& own_seat = seat_of(rank);
    if (own_seat.occupied)
      throw invalid_argument("ferry::communicator: another thread acts for rank " + std::to_string(rank));
    own_seat.occupied = true;
    own_seat.gone = false;
  }

  void leave(int rank, bool for_good) noexcept override {
    const std::lock_guard lock(guard_);
    seat& own_seat = seat_of(rank);
    own_seat.occupied = false;
    own_seat.gone = for_good;
    own_seat.reads = false;
    if (trouble_.is_broken()) changed_.notify_all();  // end_reads waits
    if (arrived_ == 0 || !for_good) return;
    break_by(group_trouble::kind::late, [&] { return text_of_leaving(rank); });
  }

  [[nodiscard]] bool is_occupied() const override {
    const std::lock_guard lock(guard_);
    for (const seat& rank_seat : seats_)
      if (rank_seat.occupied) return true;
    return false;
  }

  void recover() noexcept override {
    const std::lock_guard lock(guard_);
    for (seat& rank_seat : seats_)
      if (rank_seat.occupied) return;
    for (seat& rank_seat : seats_) {
      rank_seat.gone = false;
      rank_seat.has_come = false;
    }
    arrived_ = 0;
    if (!trouble_.is(group_trouble::kind::peer)) return;
    trouble_.clear();
    // Ranks that ended early have made fewer tables.
    std::uint64_t most = 0;
    for (const seat& rank_seat : seats_) most = rank_seat.numbers > most ? rank_seat.numbers : most;
    for (seat& rank_seat : seats_) rank_seat.numbers = most;
  }

  [[nodiscard]] std::uint64_t next_number(int rank) override {
    const std::lock_guard lock(guard_);
    return seat_of(rank).numbers++;
  }

 private:
  /// The part of a rank in a round that is no exchange.
  void bring(seat& own_seat, std::span<const std::byte> part, const char* failed) {
    if (own_seat.has_come) return;  // join_round() refuses a second thread of the rank
    own_seat.part = part;
    own_seat.outgoing = {};
    own_seat.incoming = {};
    own_seat.lane = nullptr;
    own_seat.failed = failed != nullptr;
    if (failed != nullptr) own_seat.said.set(failed);
  }

  void join_round(std::unique_lock<std::mutex>& lock, int rank, const call_note& note) {
    seat& part = seat_of(rank);
    part.reads = false;
    if (trouble_.is_broken()) {
      changed_.notify_all();  // end_reads waits
      trouble_.fail();
    }
    if (part.has_come)
      throw invalid_argument("ferry::communicator: two threads act for rank " + std::to_string(rank) +
                             " at the same time");
    part.note = note;
    part.reached = true;
    part.has_come = true;
    ++part.calls;
    ++arrived_;
    const std::uint64_t round = round_;
    if (arrived_ == size()) {
      std::exception_ptr lost;
      try {
        lost = end_round(rank);
      } catch (const std::exception& said) {
        break_by(group_trouble::kind::peer, [&] { return text_of_abort(rank, said.what()); });
        throw;
      }
      if (lost != nullptr) std::rethrow_exception(lost);
      return;
    }
    for (std::size_t r = 0; r < seats_.size(); ++r)
      if (seats_[r].gone) {
        break_by(group_trouble::kind::late, [&] { return text_of_leaving(static_cast<int>(r)); });
        trouble_.fail();
      }
    const auto until = clock::now() + deadline_;
    while (round_ == round && !trouble_.is_broken())
      if (changed_.wait_until(lock, until) == std::cv_status::timeout && round_ == round &&
          !trouble_.is_broken())
        break_by(group_trouble::kind::late, [&] {
          const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(deadline_).count();
          return "ferry::communicator: rank " + std::to_string(rank) + " waited for " + std::to_string(ms) +
                 " ms, its deadline: " + who_reached_what();
        });
    if (round_ == round) trouble_.fail();  // nobody can end this round any more
  }

  /// By the last rank that arrives. Returns what that rank throws after the round, if it failed here.
  std::exception_ptr end_round(int rank) {
    std::exception_ptr lost;
    const seat& first = seats_.front();
    bool same = true;
    for (const seat& rank_seat : seats_)
      same = same && (rank_seat.failed || first.failed
                          ? rank_seat.note.reads_like(first.note)
                          : rank_seat.note == first.note && rank_seat.part.size() == first.part.size());
    if (!same) {
      std::vector<const call_note*> notes;
      for (const seat& rank_seat : seats_) notes.push_back(&rank_seat.note);
      break_by(group_trouble::kind::protocol, [&] {
        return "ferry::communicator: the ranks called different verbs, or with arguments that differ: " +
               who_reached_what() + hidden_difference(notes);
      });
      trouble_.fail();
    }
    failed_rank_ = -1;
    for (std::size_t r = seats_.size(); r-- > 0;)
      if (seats_[r].failed) {
        failed_rank_ = static_cast<int>(r);
        failed_said_ = seats_[r].said;
      }
    if (failed_rank_ < 0) try {
        gathered_.resize(first.part.size() * seats_.size());
      } catch (const std::exception& said) {
        lost = std::current_exception();
        failed_rank_ = rank;
        failed_said_.set(said.what());
      }
    if (failed_rank_ < 0) {
      for (std::size_t r = 0; r < seats_.size() && !first.part.empty(); ++r)
        std::memcpy(gathered_.data() + r * first.part.size(), seats_[r].part.data(), first.part.size());
      readers_ = size();
      for (seat& rank_seat : seats_) rank_seat.reads = true;
    }
    for (seat& rank_seat : seats_) rank_seat.has_come = false;
    arrived_ = 0;
    ++round_;
    changed_.notify_all();
    return lost;
  }

  void copy_parts(int rank, std::span<const incoming_part> incoming, device_lane* lane) {
    for (std::size_t i = 0; i < incoming.size(); ++i) {
      const std::size_t r = i % seats_.size();
      const seat& sender = seats_[r];
      const outgoing_part& part = sender.outgoing[i - r + static_cast<std::size_t>(rank)];
      const std::size_t bytes = std::min(part.bytes, incoming[i].bytes);
      if (bytes == 0) continue;
      if (lane != nullptr)
        lane->take(sender.lane, incoming[i].data, part.data, bytes);
      else if (sender.lane != nullptr)
        sender.lane->read(incoming[i].data, part.data, bytes);
      else
        std::memcpy(incoming[i].data, part.data, bytes);
    }
    if (lane != nullptr) lane->finish();
  }

  void break_by(group_trouble::kind kind, function_ref<std::string()> text) noexcept {
    trouble_.set(kind, text);
    changed_.notify_all();
  }

  void throw_failed(int rank) const {
    if (failed_rank_ >= 0 && failed_rank_ != rank)
      throw_peer_failed(failed_rank_, seats_[static_cast<std::size_t>(rank)].note, failed_said_);
  }

  [[nodiscard]] std::string text_of_leaving(int rank) const {
    return "ferry::communicator: rank " + std::to_string(rank) +
           " has left and does not come to a call that others are in: " + who_reached_what();
  }

  [[nodiscard]] std::string who_reached_what() const {
    std::string text;
    for (std::size_t r = 0; r < seats_.size(); ++r) {
      const seat& rank_seat = seats_[r];
      text += (r == 0 ? "rank " : "; rank ") + std::to_string(r);
      if (rank_seat.has_come)
        text += " is in " + std::string(rank_seat.note.words());
      else if (rank_seat.gone)
        text += " has left";
      else
        text += " is elsewhere";
      if (!rank_seat.has_come)
        text += rank_seat.reached ? ", after " + std::string(rank_seat.note.words()) : ", after no call";
      text += " (call " + std::to_string(rank_seat.calls) + ")";
    }
    return text;
  }

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

}  // namespace

std::shared_ptr<transport> make_thread_transport(int ranks, std::chrono::nanoseconds deadline,
                                                 std::unique_ptr<const rank_devices> devices) {
  return std::make_shared<thread_transport>(ranks, deadline, std::move(devices));
}

}  // namespace ferry::detail
