// SPDX-License-Identifier: Apache-2.0
#include "thread_transport.hpp"

#include <ferry/distributed/communicator/detail/device_lane.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <mutex>
#include <span>

/// The calls in which ranks read each other's memory.
namespace ferry::detail {

void thread_transport::copy_parts(int rank, std::span<const incoming_part> incoming, device_lane* lane) {
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

void thread_transport::exchange_by(int rank, const call_note& note, std::span<const outgoing_part> outgoing,
                                   std::span<const incoming_part> incoming, device_lane* lane) {
  std::unique_lock lock = changed_.lock(guard_);
  seat& own_seat = seat_of(rank);
  if (!own_seat.has_come) {
    own_seat.part = {};
    own_seat.outgoing = outgoing;
    own_seat.incoming = incoming;
    own_seat.lane = lane;
    own_seat.failed = false;
  }
  meet(lock, rank, note);
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

void thread_transport::end_reads(int rank, const call_note& note, const char* failed,
                                 std::span<const std::byte> mine, std::byte* theirs) {
  std::unique_lock lock = changed_.lock(guard_);
  bring(seat_of(rank), mine, failed);
  try {
    meet(lock, rank, note);
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

}  // namespace ferry::detail
