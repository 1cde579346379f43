// SPDX-License-Identifier: Apache-2.0
#pragma once

#if __has_include(<mpi.h>)

#include <ferry/distributed/communication_error.hpp>
#include <ferry/distributed/detail/transport.hpp>
#include <ferry/error.hpp>

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace ferry::detail {

/// Processes of an MPI communicator, one rank each. Every call begins with a header that each rank sends to
/// each: what it calls, or why it can't. So all ranks know what the others do before data moves, and who has
/// not come when the deadline passes. MPI reads and writes memory of this object and receives into that of
/// the caller. A group that is broken keeps its memory for ever: messages in flight may still use it.
class mpi_transport final : public transport {
 public:
  mpi_transport(MPI_Comm of, std::chrono::nanoseconds deadline) : deadline_(deadline) {
    require(MPI_Comm_dup(of, &comm_));
    MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
    MPI_Comm_rank(comm_, &rank_);
    MPI_Comm_size(comm_, &size_);
    memory_ = std::make_unique<memory>();
    memory_->headers.resize(static_cast<std::size_t>(size_));
  }
  ~mpi_transport() override {
    int ended = 0;
    MPI_Finalized(&ended);
    if (!broken_.empty())
      (void)memory_.release();
    else if (ended == 0)
      MPI_Comm_free(&comm_);
  }

  [[nodiscard]] int size() const override { return size_; }
  [[nodiscard]] int first_local() const override { return rank_; }
  [[nodiscard]] int local_count() const override { return 1; }
  [[nodiscard]] std::string_view name() const override { return "mpi"; }

  void all_gather(int, const call_note& note, std::span<const std::byte> mine, std::byte* theirs) override {
    meet(kind::all_gather, note, mine.size(), nullptr);
    std::vector<outgoing_part> to(static_cast<std::size_t>(size_), {mine.data(), mine.size()});
    std::vector<incoming_part> from;
    for (int r = 0; r < size_; ++r)
      from.push_back({theirs + static_cast<std::size_t>(r) * mine.size(), mine.size()});
    move(note, to, from);
  }
  void exchange(int, const call_note& note, std::span<const outgoing_part> to,
                std::span<const incoming_part> from) override {
    meet(kind::exchange, note, 0, nullptr);
    move(note, to, from);
  }
  void fail(int, const call_note& note, const char* what) noexcept override {
    try {
      meet(kind::failure, note, 0, what);
    } catch (...) {
      // The caller throws its own error.
    }
  }
  /// Tells the others in place of a header, and does not wait for theirs.
  void abort(int, const char* what) noexcept override {
    if (!broken_.empty()) return;
    say_last(kind::abort, what);
    if (broken_.empty())
      break_by(kind_of_break::peer, "ferry::communicator: this rank has left by an exception");
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

 private:
  using clock = std::chrono::steady_clock;
  enum class kind : std::uint32_t { all_gather, exchange, failure, abort, late };
  enum class kind_of_break { none, peer, late, protocol };
  static constexpr int header_tag = 1, data_tag = 2;
  /// MPI counts bytes in an int.
  static constexpr std::size_t most_bytes = std::size_t{1} << 30;

  struct header {
    call_note note;
    kind what = kind::all_gather;
    std::uint64_t bytes = 0;
    std::uint64_t call = 0;
    failure_text said;
  };
  struct memory {
    header own, last;
    std::vector<header> headers;
    std::vector<std::byte> leaving;
    std::vector<MPI_Request> requests;
  };

  /// Messages may be in flight after an error.
  void require(int code) {
    if (code == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    MPI_Error_string(code, text, &length);
    break_by(kind_of_break::late,
             "ferry::communicator: MPI failed: " + std::string(text, static_cast<std::size_t>(length)));
    throw_broken();
  }

  void break_by(kind_of_break what, std::string text) {
    kind_ = what;
    broken_ = std::move(text);
  }
  [[noreturn]] void throw_broken() const {
    if (kind_ == kind_of_break::protocol) throw protocol_error(broken_);
    if (kind_ == kind_of_break::late) throw communication_error(broken_);
    throw peer_error(broken_);
  }

  /// Waits for all requests; false where the time is over before.
  bool wait(std::chrono::nanoseconds most) {
    const auto until = clock::now() + most;
    for (int turn = 0;; ++turn) {
      int done = 0;
      require(MPI_Testall(static_cast<int>(memory_->requests.size()), memory_->requests.data(), &done,
                          MPI_STATUSES_IGNORE));
      if (done != 0) return true;
      if (clock::now() >= until) return false;
      if (turn < 1000)
        std::this_thread::yield();
      else
        std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }
  [[nodiscard]] std::string waited(const call_note& note) const {
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(deadline_).count();
    return "ferry::communicator: rank " + std::to_string(rank_) + " waited for " + std::to_string(ms) +
           " ms, its deadline, in " + std::string(note.words()) + " (call " + std::to_string(calls_) + ")";
  }

  /// In place of the header of a next call, from a rank that makes none.
  void say_last(kind what, const char* said) noexcept {
    try {
      memory_->last = {call_note("abort"), what, 0, calls_, {}};
      memory_->last.said.set(said);
      memory_->requests.clear();
      send(memory_->last);
      (void)wait(std::min<std::chrono::nanoseconds>(deadline_, std::chrono::seconds(1)));
    } catch (...) {
      // The others find out by their deadlines.
    }
  }
  void send(const header& one) {
    for (int r = 0; r < size_; ++r)
      if (r != rank_)
        require(MPI_Isend(&one, sizeof(header), MPI_BYTE, r, header_tag, comm_,
                          &memory_->requests.emplace_back()));
  }

  void meet(kind what, const call_note& note, std::uint64_t bytes, const char* said) {
    if (!broken_.empty()) throw_broken();
    ++calls_;
    memory& m = *memory_;
    m.own = {note, what, bytes, calls_, {}};
    if (said != nullptr) m.own.said.set(said);
    m.requests.clear();
    for (int r = 0; r < size_; ++r) {
      if (r == rank_) continue;
      require(MPI_Irecv(&m.headers[static_cast<std::size_t>(r)], sizeof(header), MPI_BYTE, r, header_tag,
                        comm_, &m.requests.emplace_back()));
    }
    send(m.own);
    m.headers[static_cast<std::size_t>(rank_)] = m.own;
    if (!wait(deadline_)) {
      std::string who;
      for (int r = 0, place = 0; r < size_; ++r) {
        if (r == rank_) continue;
        int done = 0;
        require(MPI_Test(&m.requests[static_cast<std::size_t>(place++)], &done, MPI_STATUS_IGNORE));
        if (done == 0) who += (who.empty() ? "; not there: rank " : ", rank ") + std::to_string(r);
      }
      break_by(kind_of_break::late, waited(note) + who);
      say_last(kind::late, broken_.c_str());  // for ranks that come later
      throw_broken();
    }
    judge();
  }

  /// All ranks judge the same headers.
  void judge() {
    const auto& all = memory_->headers;
    for (int r = 0; r < size_; ++r)
      if (const header& each = all[static_cast<std::size_t>(r)]; each.what == kind::late) {
        break_by(kind_of_break::late, each.said.c_str());
        throw_broken();
      } else if (each.what == kind::abort) {
        break_by(kind_of_break::peer,
                 "ferry::communicator: rank " + std::to_string(r) + " failed: " + each.said.c_str());
        throw_broken();
      }
    const auto fails = [](const header& each) { return each.what == kind::failure; };
    const auto failed = std::find_if(all.begin(), all.end(), fails);
    const header* alive = nullptr;
    bool same = true;
    for (const header& each : all) {
      same = same && each.note == all.front().note;
      if (fails(each)) continue;
      if (alive == nullptr) alive = &each;
      same = same && each.what == alive->what && each.bytes == alive->bytes;
    }
    if (!same) {
      std::string text =
          "ferry::communicator: the ranks called different verbs, or with arguments that differ: ";
      for (std::size_t r = 0; r < all.size(); ++r)
        text += (r == 0 ? "rank " : "; rank ") + std::to_string(r) + " is in " +
                std::string(all[r].note.words()) + " (call " + std::to_string(all[r].call) + ")";
      break_by(kind_of_break::protocol, std::move(text));
      throw_broken();
    }
    if (failed != all.end() && failed - all.begin() != rank_)
      throw peer_error("ferry::communicator: rank " + std::to_string(failed - all.begin()) + " failed in " +
                       std::string(failed->note.words()) + ": " + failed->said.c_str());
  }

  void move(const call_note& note, std::span<const outgoing_part> to, std::span<const incoming_part> from) {
    memory& m = *memory_;
    m.requests.clear();
    std::size_t leaving = 0;
    for (const outgoing_part& each : to) leaving += each.bytes;
    if (m.leaving.size() < leaving) m.leaving.resize(leaving);
    std::size_t receives = 0, at = 0;
    for (int r = 0; r < size_; ++r) {
      const incoming_part& part = from[static_cast<std::size_t>(r)];
      for (std::size_t done = 0; r != rank_ && done < part.bytes; done += most_bytes, ++receives)
        require(MPI_Irecv(part.data + done, static_cast<int>(std::min(most_bytes, part.bytes - done)),
                          MPI_BYTE, r, data_tag, comm_, &m.requests.emplace_back()));
    }
    for (int r = 0; r < size_; ++r) {
      const outgoing_part& part = to[static_cast<std::size_t>(r)];
      if (part.bytes == 0) continue;
      if (r == rank_) {
        std::memcpy(from[static_cast<std::size_t>(r)].data, part.data, part.bytes);
        continue;
      }
      std::memcpy(m.leaving.data() + at, part.data, part.bytes);
      for (std::size_t done = 0; done < part.bytes; done += most_bytes)
        require(MPI_Isend(m.leaving.data() + at + done,
                          static_cast<int>(std::min(most_bytes, part.bytes - done)), MPI_BYTE, r, data_tag,
                          comm_, &m.requests.emplace_back()));
      at += part.bytes;
    }
    if (wait(deadline_)) return;
    for (std::size_t i = 0; i < receives; ++i)
      if (m.requests[i] != MPI_REQUEST_NULL) {
        MPI_Cancel(&m.requests[i]);
        MPI_Wait(&m.requests[i], MPI_STATUS_IGNORE);
      }
    break_by(kind_of_break::late, waited(note) + ", while data moved");
    throw_broken();
  }

  MPI_Comm comm_ = MPI_COMM_NULL;
  std::chrono::nanoseconds deadline_;
  int rank_ = 0;
  int size_ = 1;
  bool occupied_ = false;
  std::uint64_t numbers_ = 0;
  std::uint64_t calls_ = 0;
  kind_of_break kind_ = kind_of_break::none;
  std::string broken_;  ///< why the group is broken
  std::unique_ptr<memory> memory_;
};

}  // namespace ferry::detail

#endif
