// SPDX-License-Identifier: Apache-2.0
#include "thread_transport.hpp"

#include "hidden_difference.hpp"

#include <ferry/distributed/communicator/communication_error.hpp>
#include <ferry/distributed/communicator/detail/device_lane.hpp>
#include <ferry/error.hpp>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace ferry::detail {

thread_transport::thread_transport(int ranks, std::chrono::nanoseconds deadline,
                                   std::unique_ptr<const rank_devices> devices)
    : changed_(ranks),
      seats_(static_cast<std::size_t>(ranks)),
      deadline_(deadline),
      devices_(std::move(devices)) {}

void thread_transport::throw_broken() const {
  if (trouble_ == trouble::protocol) throw protocol_error(trouble_text_);
  if (trouble_ == trouble::late) throw communication_error(trouble_text_);
  throw peer_error(trouble_text_);
}

std::string thread_transport::who_reached_what() const {
  std::string text;
  for (std::size_t r = 0; r < seats_.size(); ++r) {
    const seat& each = seats_[r];
    text += (r == 0 ? "rank " : "; rank ") + std::to_string(r);
    if (each.here)
      text += " is in " + std::string(each.note.words());
    else if (each.gone)
      text += " has left";
    else
      text += " is elsewhere";
    if (!each.here) text += each.reached ? ", after " + std::string(each.note.words()) : ", after no call";
    text += " (call " + std::to_string(each.calls) + ")";
  }
  return text;
}

std::string thread_transport::text_of_leaving(int rank) const {
  return "ferry::communicator: rank " + std::to_string(rank) +
         " has left and does not come to a call that others are in: " + who_reached_what();
}

/// Keeps the first reason, which text() composes.
void thread_transport::break_by(trouble what, int rank, function_ref<std::string()> text) noexcept {
  if (trouble_ == trouble::none) {
    trouble_ = what;
    trouble_rank_ = rank;
    try {
      trouble_text_ = text();
    } catch (...) {
      trouble_text_.clear();  // out of memory: the type of the error has to do
    }
  }
  changed_.notify_all();
}

/// By the last rank that arrives. Returns what that rank throws after the round, where it failed here.
std::exception_ptr thread_transport::end_round(int rank) {
  std::exception_ptr lost;
  const seat& first = seats_.front();
  bool same = true;
  for (const seat& each : seats_)
    same = same &&
           (each.failed || first.failed ? each.note.reads_like(first.note)
                                        : each.note == first.note && each.mine.size() == first.mine.size());
  if (!same) {
    break_by(trouble::protocol, -1, [&] {
      return "ferry::communicator: the ranks called different verbs, or with arguments that differ: " +
             who_reached_what() + hidden_difference(seats_);
    });
    throw_broken();
  }
  failed_rank_ = -1;
  for (std::size_t r = seats_.size(); r-- > 0;)
    if (seats_[r].failed) {
      failed_rank_ = static_cast<int>(r);
      failed_said_ = seats_[r].said;
    }
  if (failed_rank_ < 0) try {
      gathered_.resize(first.mine.size() * seats_.size());
    } catch (const std::exception& said) {
      lost = std::current_exception();
      failed_rank_ = rank;
      failed_said_.set(said.what());
    }
  if (failed_rank_ < 0) {
    for (std::size_t r = 0; r < seats_.size() && !first.mine.empty(); ++r)
      std::memcpy(gathered_.data() + r * first.mine.size(), seats_[r].mine.data(), first.mine.size());
    readers_ = size();
    for (seat& each : seats_) each.reads = true;
  }
  for (seat& each : seats_) each.here = false;
  arrived_ = 0;
  ++round_;
  changed_.notify_all();
  return lost;
}

void thread_transport::meet(std::unique_lock<std::mutex>& lock, int rank, const call_note& note) {
  seat& mine = seat_of(rank);
  mine.reads = false;
  if (trouble_ != trouble::none) {
    changed_.notify_all();  // end_reads waits
    throw_broken();
  }
  if (mine.here)
    throw invalid_argument("ferry::communicator: two threads act for rank " + std::to_string(rank) +
                           " at the same time");
  mine.note = note;
  mine.reached = true;
  mine.here = true;
  ++mine.calls;
  ++arrived_;
  const std::uint64_t round = round_;
  if (arrived_ == size()) {
    std::exception_ptr lost;
    try {
      lost = end_round(rank);
    } catch (const std::exception& said) {
      break_by(trouble::peer, rank, [&] {
        return "ferry::communicator: rank " + std::to_string(rank) + " failed: " + said.what();
      });
      throw;
    }
    if (lost != nullptr) std::rethrow_exception(lost);
    return;
  }
  for (std::size_t r = 0; r < seats_.size(); ++r)
    if (seats_[r].gone) {
      break_by(trouble::late, static_cast<int>(r), [&] { return text_of_leaving(static_cast<int>(r)); });
      throw_broken();
    }
  const auto until = clock::now() + deadline_;
  while (round_ == round && trouble_ == trouble::none)
    if (changed_.wait_until(lock, until) == std::cv_status::timeout && round_ == round &&
        trouble_ == trouble::none)
      break_by(trouble::late, rank, [&] {
        const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(deadline_).count();
        return "ferry::communicator: rank " + std::to_string(rank) + " waited for " + std::to_string(ms) +
               " ms, its deadline: " + who_reached_what();
      });
  if (round_ == round) throw_broken();  // nobody can end this round any more
}

void thread_transport::throw_failed(int rank) const {
  if (failed_rank_ >= 0 && failed_rank_ != rank)
    throw peer_error("ferry::communicator: rank " + std::to_string(failed_rank_) + " failed in " +
                     std::string(seats_[static_cast<std::size_t>(rank)].note.words()) + ": " +
                     failed_said_.c_str());
}

/// What a rank brings to a round that is no exchange.
void thread_transport::bring(seat& own, std::span<const std::byte> mine, const char* failed) {
  if (own.here) return;  // meet() refuses a second thread of the rank
  own.mine = mine;
  own.to = {};
  own.from = {};
  own.lane = nullptr;
  own.failed = failed != nullptr;
  if (failed != nullptr) own.said.set(failed);
}

void thread_transport::all_gather(int rank, const call_note& note, std::span<const std::byte> mine,
                                  std::byte* theirs) {
  std::unique_lock lock(guard_);
  bring(seat_of(rank), mine, nullptr);
  meet(lock, rank, note);
  throw_failed(rank);
  if (!gathered_.empty()) std::memcpy(theirs, gathered_.data(), gathered_.size());
}

void thread_transport::fail(int rank, const call_note& note, const char* what) noexcept {
  try {
    std::unique_lock lock(guard_);
    seat& own = seat_of(rank);
    if (own.here) return;
    bring(own, {}, what);
    meet(lock, rank, note);
  } catch (...) {
    // The others learn of it by the break that was thrown here; the caller throws its own error.
  }
}

void thread_transport::abort(int rank, const char* what) noexcept {
  const std::lock_guard lock(guard_);
  break_by(trouble::peer, rank,
           [&] { return "ferry::communicator: rank " + std::to_string(rank) + " failed: " + what; });
}

void thread_transport::enter(int rank) {
  const std::lock_guard lock(guard_);
  if (rank < 0 || rank >= size())
    throw out_of_range("ferry::communicator: there is no rank " + std::to_string(rank) + " of " +
                       std::to_string(size()));
  seat& own = seat_of(rank);
  if (own.occupied)
    throw invalid_argument("ferry::communicator: another thread acts for rank " + std::to_string(rank));
  own.occupied = true;
  own.gone = false;
}

void thread_transport::leave(int rank, bool for_good) noexcept {
  const std::lock_guard lock(guard_);
  seat& own = seat_of(rank);
  own.occupied = false;
  own.gone = for_good;
  own.reads = false;
  if (trouble_ != trouble::none) changed_.notify_all();  // end_reads waits
  if (arrived_ == 0 || !for_good) return;
  break_by(trouble::late, rank, [&] { return text_of_leaving(rank); });
}

bool thread_transport::is_occupied() const {
  const std::lock_guard lock(guard_);
  for (const seat& each : seats_)
    if (each.occupied) return true;
  return false;
}

void thread_transport::recover() noexcept {
  const std::lock_guard lock(guard_);
  for (seat& each : seats_)
    if (each.occupied) return;
  for (seat& each : seats_) {
    each.gone = false;
    each.here = false;
  }
  arrived_ = 0;
  if (trouble_ != trouble::peer) return;
  trouble_ = trouble::none;
  trouble_text_.clear();
  // Ranks that ended early have made fewer tables.
  std::uint64_t most = 0;
  for (const seat& each : seats_) most = each.numbers > most ? each.numbers : most;
  for (seat& each : seats_) each.numbers = most;
}

std::uint64_t thread_transport::next_number(int rank) {
  const std::lock_guard lock(guard_);
  return seat_of(rank).numbers++;
}

}  // namespace ferry::detail
