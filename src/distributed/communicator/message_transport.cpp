// SPDX-License-Identifier: Apache-2.0
#include <ferry/distributed/communicator/detail/message_transport.hpp>

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
  meet(call_kind::all_gather, note, bytes, nullptr, [&](call_brief& brief) {
    if (bytes <= call_brief::room) std::copy_n(part.data(), bytes, brief.data.data());
  });
  if (bytes > call_brief::room) return or_break([&] { gather_or_give_up(note, part.data(), parts, bytes); });
  for (std::size_t r = 0; r < briefs_.size(); ++r)
    std::copy_n(briefs_[r].data.data(), bytes, parts + r * bytes);
}

void message_transport::exchange(int, const call_note& note, std::span<const outgoing_part> outgoing,
                                 std::span<const incoming_part> incoming, device_lane*) {
  meet(call_kind::exchange, note, 0, nullptr, [&](call_brief&) { make_room(outgoing); });
  or_break([&] {
    for (auto i = static_cast<std::size_t>(rank_); i < outgoing.size(); i += static_cast<std::size_t>(size_))
      if (outgoing[i].bytes != 0) std::copy_n(outgoing[i].data, outgoing[i].bytes, incoming[i].data);
    call_header last;
    require_done(move_parts(outgoing, incoming, clock::now() + deadline_, last), note, last);
  });
}

void message_transport::wait_before_calls(const std::shared_ptr<access_tracker>& tracker, bool reads) {
  std::erase_if(awaited_, [](const awaited& awaited_work) { return awaited_work.tracker.expired(); });
  awaited_.push_back({tracker, reads});
}

void message_transport::fail(int, const call_note& note, const char* message) noexcept {
  try {
    meet(call_kind::failure, note, 0, message, [](call_brief&) {});
  } catch (...) {
    // The caller throws its own error.
  }
}

void message_transport::abort(int, const char* message) noexcept {
  if (is_broken()) return;
  say_last(call_kind::abort, message);
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

void message_transport::say_last(call_kind kind, const char* said) noexcept {
  try {
    call_header last{call_note("last words"), kind, rank_, 0, calls_, {}};
    last.said.set(said);
    send_last(last);
  } catch (...) {
    // The others find out by their deadlines.
  }
}

void message_transport::require_done(outcome end, const call_note& note, const call_header& last) {
  using std::chrono::milliseconds;
  if (end == outcome::done) return;
  const bool is_abort = end == outcome::told && last.kind == call_kind::abort;
  if (is_abort) {
    trouble_.set(group_trouble::kind::peer, [&] { return text_of_abort(last.rank, last.said.c_str()); });
    trouble_.fail();
  }
  const std::string text = end == outcome::told ? std::string(last.said.c_str()) : waited(note);
  say_last(call_kind::late, text.c_str());
  // The ranks that wait, too, say so at once; the others have not come.
  std::vector<bool> is_there(static_cast<std::size_t>(size_), false);
  const auto note_rank = [&](int rank) { is_there[static_cast<std::size_t>(rank)] = true; };
  note_rank(rank_);
  if (end == outcome::told) note_rank(last.rank);
  call_header words;
  for (const auto until = clock::now() + std::min<std::chrono::nanoseconds>(deadline_, milliseconds(200));
       take_last(words, until);)
    note_rank(words.rank);
  trouble_.set(group_trouble::kind::late, [&] {
    std::string missing;
    for (std::size_t r = 0; r < is_there.size(); ++r)
      if (!is_there[r]) missing += (missing.empty() ? "; not there: rank " : ", rank ") + std::to_string(r);
    return text + missing;
  });
  trouble_.fail();
}

void message_transport::gather_or_give_up(const call_note& note, const std::byte* part, std::byte* parts,
                                          std::size_t bytes) {
  call_header last;
  // A rank that has left before has said so: one look lets MPI receive its words, and one finds them.
  if (take_last(last, {}) || take_last(last, {})) require_done(outcome::told, note, last);
  require_done(gather(part, parts, bytes, clock::now() + deadline_, last), note, last);
}

void message_transport::meet(call_kind kind, const call_note& note, std::uint64_t bytes, const char* said,
                             function_ref<void(call_brief&)> prepare) {
  if (is_broken()) trouble_.fail();
  call_header header{note, kind, rank_, bytes, ++calls_, {}};
  if (said != nullptr) header.said.set(said);
  call_brief brief;
  const std::exception_ptr lost = get_ready(header, brief, prepare);
  brief.kind = header.kind;
  brief.rank = rank_;
  brief.call = calls_;
  brief.digest = note.digest_of_all();
  brief.bytes = bytes;
  const auto same = [&](const call_brief& words) {
    return words.kind == brief.kind && words.digest == brief.digest && words.bytes == brief.bytes;
  };
  bool agree = kind != call_kind::failure && lost == nullptr;
  std::vector<call_header> headers;
  or_break([&] {
    briefs_.resize(static_cast<std::size_t>(size_));
    gather_or_give_up(note, reinterpret_cast<const std::byte*>(&brief),
                      reinterpret_cast<std::byte*>(briefs_.data()), sizeof brief);
    agree = agree && std::all_of(briefs_.begin(), briefs_.end(), same);
    if (agree) return;
    headers.resize(briefs_.size());
    gather_or_give_up(note, reinterpret_cast<const std::byte*>(&header),
                      reinterpret_cast<std::byte*>(headers.data()), sizeof header);
  });
  if (agree) return;
  judge(headers);
  if (lost != nullptr) std::rethrow_exception(lost);
}

std::exception_ptr message_transport::get_ready(call_header& header, call_brief& brief,
                                                function_ref<void(call_brief&)> prepare) {
  try {
    prepare(brief);
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
    header.kind = call_kind::failure;
    header.said.set(failed.what());
    return std::current_exception();
  }
}

void message_transport::judge(const std::vector<call_header>& headers) {
  const auto fails = [](const call_header& header) { return header.kind == call_kind::failure; };
  const auto failed = std::find_if(headers.begin(), headers.end(), fails);
  const call_header* alive = nullptr;
  bool same = true;
  for (const call_header& header : headers) {
    same = same && header.note.reads_like(headers.front().note);
    if (fails(header)) continue;
    if (alive == nullptr) alive = &header;
    same = same && header.note == alive->note && header.kind == alive->kind && header.bytes == alive->bytes;
  }
  if (!same) {
    std::vector<const call_note*> notes;
    for (const call_header& header : headers) notes.push_back(&header.note);
    trouble_.set(group_trouble::kind::protocol, [&] {
      std::string text =
          "ferry::communicator: the ranks called different verbs, or with arguments that differ: ";
      for (std::size_t r = 0; r < headers.size(); ++r)
        text += (r == 0 ? "rank " : "; rank ") + std::to_string(r) + " is in " +
                std::string(headers[r].note.words()) + " (call " + std::to_string(headers[r].call) + ")";
      return text + hidden_difference(notes);
    });
    trouble_.fail();
  }
  if (failed != headers.end() && failed->rank != rank_)
    throw_peer_failed(failed->rank, failed->note, failed->said);
}

}  // namespace ferry::detail
