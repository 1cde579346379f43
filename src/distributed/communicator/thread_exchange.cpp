// SPDX-License-Identifier: Apache-2.0
#include "thread_transport.hpp"

#include <ferry/distributed/communicator/detail/device_lane.hpp>

#include <cstddef>
#include <cstring>
#include <exception>
#include <mutex>
#include <span>

/// The calls in which ranks read each other's memory.
namespace ferry::detail {

void thread_transport::copy_parts(int rank, std::span<const incoming_part> from, device_lane* lane) {
  for (std::size_t r = 0; r < seats_.size(); ++r) {
    const seat& sender = seats_[r];
    const outgoing_part& part = sender.to[static_cast<std::size_t>(rank)];
    const std::size_t bytes = part.bytes < from[r].bytes ? part.bytes : from[r].bytes;
    if (bytes == 0) continue;
    if (lane != nullptr)
      lane->take(sender.lane, from[r].data, part.data, bytes);
    else if (sender.lane != nullptr)
      sender.lane->read(from[r].data, part.data, bytes);
    else
      std::memcpy(from[r].data, part.data, bytes);
  }
  if (lane != nullptr) lane->finish();
}

void thread_transport::break_by_failure(int rank, const std::exception_ptr& of) noexcept {
  try {
    std::rethrow_exception(of);
  } catch (const std::exception& lost) {
    abort(rank, lost.what());
  } catch (...) {
    abort(rank, "an exception that is no std::exception");
  }
}

void thread_transport::exchange_by(int rank, const call_note& note, std::span<const outgoing_part> to,
                                   std::span<const incoming_part> from, device_lane* lane) {
  std::unique_lock lock(guard_);
  seat& own = seat_of(rank);
  if (!own.here) {
    own.mine = {};
    own.to = to;
    own.from = from;
    own.lane = lane;
    own.failed = false;
  }
  meet(lock, rank, note);
  throw_failed(rank);
  // From here no rank leaves before all have read, also where the group breaks meanwhile: copying ends.
  lock.unlock();
  std::exception_ptr lost;
  try {
    copy_parts(rank, from, lane);
  } catch (...) {
    lost = std::current_exception();
    if (lane != nullptr) lane->abandon();
    break_by_failure(rank, lost);
  }
  lock.lock();
  if (--readers_ == 0) changed_.notify_all();
  const std::uint64_t round = round_;
  changed_.wait(lock, [&] { return readers_ == 0 || round_ != round; });
  if (lost != nullptr) std::rethrow_exception(lost);
  if (trouble_ != trouble::none) throw_broken();  // another rank lacks what it should have got
}

void thread_transport::end_reads(int rank, const call_note& note, const char* failed) {
  std::unique_lock lock(guard_);
  bring(seat_of(rank), {}, failed);
  try {
    meet(lock, rank, note);
  } catch (...) {
    // Without a deadline: what the others read must not go away.
    changed_.wait(lock, [&] {
      for (const seat& each : seats_)
        if (each.reads) return false;
      return true;
    });
    throw;
  }
  if (failed == nullptr) throw_failed(rank);
}

}  // namespace ferry::detail
