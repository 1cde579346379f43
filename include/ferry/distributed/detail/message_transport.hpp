// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communication_error.hpp>
#include <ferry/distributed/detail/call_header.hpp>
#include <ferry/distributed/detail/transport.hpp>
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
#include <string_view>
#include <utility>
#include <vector>

namespace ferry::detail {

/// Processes that send messages, one rank each. Every call begins with a header that each rank sends to each:
/// what it calls, or why it can't. So all ranks know what the others do before data moves, and who has not
/// come when the deadline passes. Derived classes move headers and data.
class message_transport : public transport {
 public:
  using clock = std::chrono::steady_clock;

  [[nodiscard]] int size() const override { return size_; }
  [[nodiscard]] int first_local() const override { return rank_; }
  [[nodiscard]] int local_count() const override { return 1; }

  void all_gather(int, const call_note& note, std::span<const std::byte> mine, std::byte* theirs) override {
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
  void exchange(int, const call_note& note, std::span<const outgoing_part> to,
                std::span<const incoming_part> from) override {
    meet(call_header::kind::exchange, note, 0, nullptr, [&] { make_room(to); });
    or_break([&] { move(note, to, from); });
  }
  void exchange_device_memory(int, const call_note& note, std::span<const outgoing_part> to,
                              std::span<const incoming_part> from) override {
    if (!sends_device_memory()) return transport::exchange_device_memory(rank_, note, to, from);
    meet(call_header::kind::exchange, note, 0, nullptr);
    or_break([&] {
      if (!move_device_parts(to, from, clock::now() + deadline_)) give_up(note);
    });
  }
  int pass_descriptor(int, const call_note& note, int from, int descriptor) override {
    if (!passes_descriptors()) return transport::pass_descriptor(rank_, note, from, descriptor);
    meet(call_header::kind::exchange, note, 0, nullptr);
    int mine = -1;
    or_break([&] { mine = move_descriptor(from, descriptor, clock::now() + deadline_); });
    return mine;
  }
  void wait_before_calls(const std::shared_ptr<access_tracker>& of, bool reads) override {
    std::erase_if(awaited_, [](const awaited& each) { return each.of.expired(); });
    awaited_.push_back({of, reads});
  }
  void fail(int, const call_note& note, const char* what) noexcept override {
    try {
      meet(call_header::kind::failure, note, 0, what);
    } catch (...) {
      // The caller throws its own error.
    }
  }
  /// Tells the others in place of a header, and does not wait for theirs.
  void abort(int, const char* what) noexcept override {
    if (is_broken()) return;
    say_last(call_header::kind::abort, what);
    break_by(trouble::peer, [] { return "ferry::communicator: this rank has left by an exception"; });
  }
  void enter(int rank) override {
    if (rank != rank_)
      throw out_of_range("ferry::communicator: rank " + std::to_string(rank) +
                         " is not of this process, which is rank " + std::to_string(rank_));
    if (std::exchange(occupied_, true))
      throw invalid_argument("ferry::communicator: another thread acts for rank " + std::to_string(rank));
  }
  void leave(int, bool) noexcept override { occupied_ = false; }
  [[nodiscard]] bool is_occupied() const override { return occupied_; }
  [[nodiscard]] std::uint64_t next_number(int) override { return numbers_++; }

 protected:
  enum class trouble { none, peer, late, protocol };

  explicit message_transport(std::chrono::nanoseconds deadline) : deadline_(deadline) {}
  void become(int rank, int size) {
    rank_ = rank;
    size_ = size;
  }

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] std::chrono::nanoseconds deadline() const { return deadline_; }
  [[nodiscard]] bool is_broken() const { return trouble_ != trouble::none; }

  /// Sends `own` to the others and receives theirs into all[r]. Returns which ranks have not come at `until`,
  /// and empty text where all have. Calls stop() where it finds out that a rank will never come.
  virtual std::string swap_headers(const call_header& own, std::vector<call_header>& all,
                                   clock::time_point until) = 0;
  /// Takes the memory that move_parts will need for these, while the other ranks can still be told of a lack.
  virtual void make_room(std::span<const outgoing_part>) {}
  /// Moves the parts between this rank and the others. Returns whether that ended before `until`.
  virtual bool move_parts(std::span<const outgoing_part> to, std::span<const incoming_part> from,
                          clock::time_point until) = 0;
  /// The same of parts in memory of devices, where sends_device_memory().
  virtual bool move_device_parts(std::span<const outgoing_part>, std::span<const incoming_part>,
                                 clock::time_point) {
    return false;
  }
  /// The part of pass_descriptor after the headers.
  virtual int move_descriptor(int, int, clock::time_point) { return -1; }
  /// Sends `last` to the others where no call of theirs will be answered any more. Gives up at `until`.
  virtual void send_last(const call_header& last, clock::time_point until) = 0;

  /// Breaks the group: a rank has ended, or the means of communication failed.
  [[noreturn]] void stop(const std::string& text) {
    break_by(trouble::late, [&] { return "ferry::communicator: " + text; });
    throw_broken();
  }
  /// Breaks the group: `last` came from a rank in place of its data.
  [[noreturn]] void stop_by(const call_header& last) {
    break_by(trouble::late, [&] {
      return last.what == call_header::kind::late
                 ? std::string_view(last.said.c_str())
                 : "ferry::communicator: a rank has left a call before its data was sent";
    });
    throw_broken();
  }

 private:
  /// The others count on the data of this rank; without it no later call can be understood.
  template <class Act>
  void or_break(const Act& act) {
    try {
      act();
    } catch (...) {
      break_by(trouble::late, [] { return "ferry::communicator: this rank failed while data moved"; });
      throw;
    }
  }
  /// Keeps the first reason, which text() composes.
  template <class Text>
  void break_by(trouble what, const Text& text) noexcept {
    if (is_broken()) return;
    trouble_ = what;
    try {
      text_ = text();
    } catch (...) {
      text_.clear();  // out of memory: the type of the error has to do
    }
  }
  [[noreturn]] void throw_broken() const {
    if (trouble_ == trouble::protocol) throw protocol_error(text_);
    if (trouble_ == trouble::late) throw communication_error(text_);
    throw peer_error(text_);
  }
  [[nodiscard]] std::string waited(const call_note& note) const {
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(deadline_).count();
    return "ferry::communicator: rank " + std::to_string(rank_) + " waited for " + std::to_string(ms) +
           " ms, its deadline, in " + std::string(note.words()) + " (call " + std::to_string(calls_) + ")";
  }
  void say_last(call_header::kind what, const char* said) noexcept {
    try {
      call_header last{call_header::header_mark, call_note("abort"), what, 0, calls_, {}};
      last.said.set(said);
      send_last(last, clock::now() + std::min<std::chrono::nanoseconds>(deadline_, std::chrono::seconds(1)));
    } catch (...) {
      // The others find out by their deadlines.
    }
  }

  /// prepare() runs before the headers are sent; the others are told where it throws.
  template <class Prepare>
  void meet(call_header::kind what, const call_note& note, std::uint64_t bytes, const char* said,
            const Prepare& prepare) {
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

  void meet(call_header::kind what, const call_note& note, std::uint64_t bytes, const char* said) {
    meet(what, note, bytes, said, [] {});
  }

  /// See wait_before_calls. Work that failed, and memory that is lacking, are told to the others.
  template <class Prepare>
  std::exception_ptr get_ready(call_header& own, const Prepare& prepare) {
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

  /// All ranks judge the same headers.
  void judge() {
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

  void move(const call_note& note, std::span<const outgoing_part> to, std::span<const incoming_part> from) {
    const auto self = static_cast<std::size_t>(rank_);
    if (to[self].bytes != 0) std::copy_n(to[self].data, to[self].bytes, from[self].data);
    if (!move_parts(to, from, clock::now() + deadline_)) give_up(note);
  }
  [[noreturn]] void give_up(const call_note& note) {
    break_by(trouble::late, [&] { return waited(note) + ", while data moved"; });
    throw_broken();
  }

  struct awaited {
    std::weak_ptr<access_tracker> of;
    bool reads;  ///< besides writes
  };

  std::chrono::nanoseconds deadline_;
  int rank_ = 0;
  int size_ = 1;
  bool occupied_ = false;
  std::uint64_t numbers_ = 0;
  std::uint64_t calls_ = 0;
  std::vector<call_header> headers_;
  std::vector<awaited> awaited_;
  trouble trouble_ = trouble::none;
  std::string text_;  ///< why the group is broken
};

}  // namespace ferry::detail
