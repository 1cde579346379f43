// SPDX-License-Identifier: Apache-2.0
#include <ferry/distributed/communicator/detail/message_transport.hpp>

#include "hidden_difference.hpp"

#include <ferry/distributed/communicator/communication_error.hpp>
#include <ferry/error.hpp>
#include <ferry/memory/detail/access_tracker.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ferry::detail {

void message_transport::all_gather(int, const call_note& note, std::span<const std::byte> mine,
                                   std::byte* theirs) {
  std::vector<outgoing_part> to;
  std::vector<incoming_part> from;
  const std::size_t bytes = mine.size();
  meet(call_header::kind::all_gather, note, bytes, nullptr, [&] {
    to.assign(static_cast<std::size_t>(size_), {mine.data(), bytes});
    for (std::size_t r = 0; r < to.size(); ++r) from.push_back({theirs + r * bytes, bytes});
    make_room(to);
  });
  or_break([&] { move(note, to, from); });
}

void message_transport::exchange(int, const call_note& note, std::span<const outgoing_part> to,
                                 std::span<const incoming_part> from) {
  meet(call_header::kind::exchange, note, 0, nullptr, [&] { make_room(to); });
  or_break([&] { move(note, to, from); });
}

void message_transport::exchange_device_memory(int, const call_note& note, std::span<const outgoing_part> to,
                                               std::span<const incoming_part> from) {
  if (!sends_device_memory()) return transport::exchange_device_memory(rank_, note, to, from);
  meet(call_header::kind::exchange, note, 0, nullptr);
  or_break([&] {
    if (!move_device_parts(to, from, clock::now() + deadline_)) give_up(note);
  });
}

int message_transport::pass_descriptor(int, const call_note& note, int from, int descriptor) {
  if (!passes_descriptors()) return transport::pass_descriptor(rank_, note, from, descriptor);
  meet(call_header::kind::exchange, note, 0, nullptr);
  int mine = -1;
  or_break([&] { mine = move_descriptor(from, descriptor, clock::now() + deadline_); });
  return mine;
}

void message_transport::wait_before_calls(const std::shared_ptr<access_tracker>& of, bool reads) {
  std::erase_if(awaited_, [](const awaited& each) { return each.of.expired(); });
  awaited_.push_back({of, reads});
}

void message_transport::fail(int, const call_note& note, const char* what) noexcept {
  try {
    meet(call_header::kind::failure, note, 0, what);
  } catch (...) {
    // The caller throws its own error.
  }
}

void message_transport::abort(int, const char* what) noexcept {
  if (is_broken()) return;
  say_last(call_header::kind::abort, what);
  break_by(trouble::peer, [] { return "ferry::communicator: this rank has left by an exception"; });
}

void message_transport::enter(int rank) {
  if (rank != rank_)
    throw out_of_range("ferry::communicator: rank " + std::to_string(rank) +
                       " is not of this process, which is rank " + std::to_string(rank_));
  if (std::exchange(occupied_, true))
    throw invalid_argument("ferry::communicator: another thread acts for rank " + std::to_string(rank));
}

void message_transport::stop(const std::string& text) {
  break_by(trouble::late, [&] { return "ferry::communicator: " + text; });
  throw_broken();
}

void message_transport::stop_by(const call_header& last) {
  break_by(trouble::late, [&] {
    return last.what == call_header::kind::late
               ? last.said.c_str()
               : "ferry::communicator: a rank has left a call before its data was sent";
  });
  throw_broken();
}

void message_transport::or_break(function_ref<void()> act) {
  try {
    act();
  } catch (...) {
    break_by(trouble::late, [] { return "ferry::communicator: this rank failed while data moved"; });
    throw;
  }
}

void message_transport::break_by(trouble what, function_ref<std::string()> text) noexcept {
  if (is_broken()) return;
  trouble_ = what;
  try {
    text_ = text();
  } catch (...) {
    text_.clear();  // out of memory: the type of the error has to do
  }
}

void message_transport::throw_broken() const {
  if (trouble_ == trouble::protocol) throw protocol_error(text_);
  if (trouble_ == trouble::late) throw communication_error(text_);
  throw peer_error(text_);
}

std::string message_transport::waited(const call_note& note) const {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(deadline_).count();
  return "ferry::communicator: rank " + std::to_string(rank_) + " waited for " + std::to_string(ms) +
         " ms, its deadline, in " + std::string(note.words()) + " (call " + std::to_string(calls_) + ")";
}

void message_transport::say_last(call_header::kind what, const char* said) noexcept {
  try {
    call_header last{call_header::header_mark, call_note("abort"), what, 0, calls_, {}};
    last.said.set(said);
    send_last(last, clock::now() + std::min<std::chrono::nanoseconds>(deadline_, std::chrono::seconds(1)));
  } catch (...) {
    // The others find out by their deadlines.
  }
}

void message_transport::meet(call_header::kind what, const call_note& note, std::uint64_t bytes,
                             const char* said, function_ref<void()> prepare) {
  if (is_broken()) throw_broken();
  call_header own{call_header::header_mark, note, what, bytes, ++calls_, {}};
  if (said != nullptr) own.said.set(said);
  const std::exception_ptr lost = get_ready(own, prepare);
  headers_.resize(static_cast<std::size_t>(size_));
  headers_[static_cast<std::size_t>(rank_)] = own;
  const std::string missing = swap_headers(own, headers_, clock::now() + deadline_);
  if (!missing.empty()) {
    break_by(trouble::late, [&] { return waited(note) + "; not there: " + missing; });
    say_last(call_header::kind::late, text_.c_str());  // for ranks that come later
    throw_broken();
  }
  judge();
  if (lost != nullptr) std::rethrow_exception(lost);
}

void message_transport::meet(call_header::kind what, const call_note& note, std::uint64_t bytes,
                             const char* said) {
  meet(what, note, bytes, said, [] {});
}

std::exception_ptr message_transport::get_ready(call_header& own, function_ref<void()> prepare) {
  try {
    prepare();
    for (const awaited& each : awaited_) {
      const auto alive = each.of.lock();
      if (alive == nullptr) continue;
      if (each.reads)
        alive->wait_for_all();
      else
        alive->wait_for_writes();
    }
    return nullptr;
  } catch (const std::exception& failed) {
    own.what = call_header::kind::failure;
    own.said.set(failed.what());
    return std::current_exception();
  }
}

void message_transport::judge() {
  using kind = call_header::kind;
  for (std::size_t r = 0; r < headers_.size(); ++r) {
    const call_header& each = headers_[r];
    if (each.what == kind::late) break_by(trouble::late, [&] { return each.said.c_str(); });
    if (each.what == kind::abort)
      break_by(trouble::peer, [&] {
        return "ferry::communicator: rank " + std::to_string(r) + " failed: " + each.said.c_str();
      });
    if (is_broken()) throw_broken();
  }
  const auto fails = [](const call_header& each) { return each.what == kind::failure; };
  const auto failed = std::find_if(headers_.begin(), headers_.end(), fails);
  const call_header* alive = nullptr;
  bool same = true;
  for (const call_header& each : headers_) {
    same = same && each.note.reads_like(headers_.front().note);
    if (fails(each)) continue;
    if (alive == nullptr) alive = &each;
    same = same && each.note == alive->note && each.what == alive->what && each.bytes == alive->bytes;
  }
  if (!same) {
    break_by(trouble::protocol, [&] {
      std::string text =
          "ferry::communicator: the ranks called different verbs, or with arguments that differ: ";
      for (std::size_t r = 0; r < headers_.size(); ++r)
        text += (r == 0 ? "rank " : "; rank ") + std::to_string(r) + " is in " +
                std::string(headers_[r].note.words()) + " (call " + std::to_string(headers_[r].call) + ")";
      return text + hidden_difference(headers_);
    });
    throw_broken();
  }
  if (failed != headers_.end() && failed - headers_.begin() != rank_)
    throw peer_error("ferry::communicator: rank " + std::to_string(failed - headers_.begin()) +
                     " failed in " + std::string(failed->note.words()) + ": " + failed->said.c_str());
}

void message_transport::move(const call_note& note, std::span<const outgoing_part> to,
                             std::span<const incoming_part> from) {
  const auto self = static_cast<std::size_t>(rank_);
  if (to[self].bytes != 0) std::copy_n(to[self].data, to[self].bytes, from[self].data);
  if (!move_parts(to, from, clock::now() + deadline_)) give_up(note);
}

void message_transport::give_up(const call_note& note) {
  break_by(trouble::late, [&] { return waited(note) + ", while data moved"; });
  throw_broken();
}

}  // namespace ferry::detail
