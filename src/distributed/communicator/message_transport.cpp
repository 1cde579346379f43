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

void message_transport::all_gather(int, const call_note& note, std::span<const std::byte> part,
                                   std::byte* parts) {
  const std::size_t bytes = part.size();
  if (bytes <= call_header::room) {
    meet(call_header::kind::all_gather, note, bytes, nullptr,
         [&](call_header& header) { std::copy_n(part.data(), bytes, header.data.data()); });
    for (std::size_t r = 0; r < headers_.size(); ++r)
      std::copy_n(headers_[r].data.data(), bytes, parts + r * bytes);
    return;
  }
  std::vector<outgoing_part> outgoing;
  std::vector<incoming_part> incoming;
  meet(call_header::kind::all_gather, note, bytes, nullptr, [&](call_header&) {
    outgoing.assign(static_cast<std::size_t>(size_), {part.data(), bytes});
    for (std::size_t r = 0; r < outgoing.size(); ++r) incoming.push_back({parts + r * bytes, bytes});
    make_room(outgoing);
  });
  or_break([&] { move(note, outgoing, incoming); });
}

void message_transport::exchange(int, const call_note& note, std::span<const outgoing_part> outgoing,
                                 std::span<const incoming_part> incoming) {
  meet(call_header::kind::exchange, note, 0, nullptr, [&](call_header&) { make_room(outgoing); });
  or_break([&] { move(note, outgoing, incoming); });
}

void message_transport::exchange_device_memory(int, const call_note& note,
                                               std::span<const outgoing_part> outgoing,
                                               std::span<const incoming_part> incoming) {
  if (!sends_device_memory()) return transport::exchange_device_memory(rank_, note, outgoing, incoming);
  meet(call_header::kind::exchange, note, 0, nullptr);
  or_break([&] {
    if (!move_device_parts(outgoing, incoming, clock::now() + deadline_)) give_up(note);
  });
}

int message_transport::pass_descriptor(int, const call_note& note, int owner, int descriptor) {
  if (!passes_descriptors()) return transport::pass_descriptor(rank_, note, owner, descriptor);
  meet(call_header::kind::exchange, note, 0, nullptr);
  int own_descriptor = -1;
  or_break([&] { own_descriptor = move_descriptor(owner, descriptor, clock::now() + deadline_); });
  return own_descriptor;
}

void message_transport::wait_before_calls(const std::shared_ptr<access_tracker>& tracker, bool reads) {
  std::erase_if(awaited_, [](const awaited& awaited_work) { return awaited_work.tracker.expired(); });
  awaited_.push_back({tracker, reads});
}

void message_transport::fail(int, const call_note& note, const char* message) noexcept {
  try {
    meet(call_header::kind::failure, note, 0, message);
  } catch (...) {
    // The caller throws its own error.
  }
}

void message_transport::abort(int, const char* message) noexcept {
  if (is_broken()) return;
  say_last(call_header::kind::abort, message);
  trouble_.set(group_trouble::kind::peer,
               [] { return "ferry::communicator: this rank has left by an exception"; });
}

void message_transport::enter(int rank) {
  if (rank != rank_)
    throw out_of_range("ferry::communicator: rank " + std::to_string(rank) +
                       " is not of this process, which is rank " + std::to_string(rank_));
  if (std::exchange(occupied_, true))
    throw invalid_argument("ferry::communicator: another thread acts for rank " + std::to_string(rank));
}

void message_transport::stop(const std::string& text) {
  trouble_.set(group_trouble::kind::late, [&] { return "ferry::communicator: " + text; });
  trouble_.fail();
}

void message_transport::stop_by(const call_header& last) {
  trouble_.set(group_trouble::kind::late, [&] {
    return last.call_kind == call_header::kind::late
               ? last.said.c_str()
               : "ferry::communicator: a rank has left a call before its data was sent";
  });
  trouble_.fail();
}

void message_transport::or_break(function_ref<void()> act) {
  try {
    act();
  } catch (...) {
    trouble_.set(group_trouble::kind::late,
                 [] { return "ferry::communicator: this rank failed in the middle of a call"; });
    throw;
  }
}

std::string message_transport::waited(const call_note& note) const {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(deadline_).count();
  return "ferry::communicator: rank " + std::to_string(rank_) + " waited for " + std::to_string(ms) +
         " ms, its deadline, in " + std::string(note.words()) + " (call " + std::to_string(calls_) + ")";
}

void message_transport::say_last(call_header::kind kind, const char* said) noexcept {
  try {
    call_header last{call_header::header_mark, call_note("abort"), kind, 0, calls_, {}, {}};
    last.said.set(said);
    send_last(last, clock::now() + std::min<std::chrono::nanoseconds>(deadline_, std::chrono::seconds(1)));
  } catch (...) {
    // The others find out by their deadlines.
  }
}

void message_transport::meet(call_header::kind kind, const call_note& note, std::uint64_t bytes,
                             const char* said, function_ref<void(call_header&)> prepare) {
  if (is_broken()) trouble_.fail();
  call_header header{call_header::header_mark, note, kind, bytes, ++calls_, {}, {}};
  if (said != nullptr) header.said.set(said);
  const std::exception_ptr lost = get_ready(header, prepare);
  std::string missing;
  or_break([&] {
    headers_.resize(static_cast<std::size_t>(size_));
    headers_[static_cast<std::size_t>(rank_)] = header;
    missing = swap_headers(header, headers_, clock::now() + deadline_);
  });
  if (!missing.empty()) {
    trouble_.set(group_trouble::kind::late, [&] { return waited(note) + "; not there: " + missing; });
    say_last(call_header::kind::late, trouble_.text().c_str());  // for ranks that come later
    trouble_.fail();
  }
  judge();
  if (lost != nullptr) std::rethrow_exception(lost);
}

void message_transport::meet(call_header::kind kind, const call_note& note, std::uint64_t bytes,
                             const char* said) {
  meet(kind, note, bytes, said, [](call_header&) {});
}

std::exception_ptr message_transport::get_ready(call_header& header,
                                                function_ref<void(call_header&)> prepare) {
  try {
    prepare(header);
    for (const awaited& work : awaited_) {
      const auto alive = work.tracker.lock();
      if (alive == nullptr) continue;
      if (work.reads)
        alive->wait_for_all();
      else
        alive->wait_for_writes();
    }
    return nullptr;
  } catch (const std::exception& failed) {
    header.call_kind = call_header::kind::failure;
    header.said.set(failed.what());
    return std::current_exception();
  }
}

void message_transport::judge() {
  using kind = call_header::kind;
  for (std::size_t r = 0; r < headers_.size(); ++r) {
    const call_header& header = headers_[r];
    if (header.call_kind == kind::late)
      trouble_.set(group_trouble::kind::late, [&] { return header.said.c_str(); });
    if (header.call_kind == kind::abort)
      trouble_.set(group_trouble::kind::peer,
                   [&] { return text_of_abort(static_cast<int>(r), header.said.c_str()); });
    if (is_broken()) trouble_.fail();
  }
  const auto fails = [](const call_header& header) { return header.call_kind == kind::failure; };
  const auto failed = std::find_if(headers_.begin(), headers_.end(), fails);
  const call_header* alive = nullptr;
  bool same = true;
  for (const call_header& header : headers_) {
    same = same && header.note.reads_like(headers_.front().note);
    if (fails(header)) continue;
    if (alive == nullptr) alive = &header;
    same = same && header.note == alive->note && header.call_kind == alive->call_kind &&
           header.bytes == alive->bytes;
  }
  if (!same) {
    trouble_.set(group_trouble::kind::protocol, [&] {
      std::string text =
          "ferry::communicator: the ranks called different verbs, or with arguments that differ: ";
      for (std::size_t r = 0; r < headers_.size(); ++r)
        text += (r == 0 ? "rank " : "; rank ") + std::to_string(r) + " is in " +
                std::string(headers_[r].note.words()) + " (call " + std::to_string(headers_[r].call) + ")";
      return text + hidden_difference(headers_);
    });
    trouble_.fail();
  }
  if (failed != headers_.end() && failed - headers_.begin() != rank_)
    throw_peer_failed(static_cast<int>(failed - headers_.begin()), failed->note, failed->said);
}

void message_transport::move(const call_note& note, std::span<const outgoing_part> outgoing,
                             std::span<const incoming_part> incoming) {
  const auto self = static_cast<std::size_t>(rank_);
  if (outgoing[self].bytes != 0) std::copy_n(outgoing[self].data, outgoing[self].bytes, incoming[self].data);
  if (!move_parts(outgoing, incoming, clock::now() + deadline_)) give_up(note);
}

void message_transport::give_up(const call_note& note) {
  trouble_.set(group_trouble::kind::late, [&] { return waited(note) + ", while data moved"; });
  trouble_.fail();
}

}  // namespace ferry::detail
