// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// Groups of MPI processes. Needs MPI's headers and library; no other header of ferry does.

#include <ferry/distributed/communicator/communicator.hpp>
#include <ferry/distributed/communicator/detail/message_transport.hpp>
#include <ferry/error.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#if __has_include(<mpi.h>)
#include <mpi.h>

namespace ferry::detail {

/// Processes of an MPI communicator. MPI reads and writes memory of this object, and receives into that of
/// the caller. A group that is broken keeps its memory for ever: messages in flight may still use it.
class mpi_transport final : public message_transport {
 public:
  mpi_transport(MPI_Comm group, std::chrono::nanoseconds deadline)
      : message_transport(deadline), memory_(std::make_unique<memory>()) {
    require(MPI_Comm_dup(group, &comm_));
    MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
    int rank = 0, ranks = 1;
    MPI_Comm_rank(comm_, &rank);
    MPI_Comm_size(comm_, &ranks);
    become(rank, ranks);
  }
  ~mpi_transport() override {
    int ended = 0;
    if (in_own_process()) MPI_Finalized(&ended);
    if (is_broken() || !in_own_process())
      (void)memory_.release();
    else if (ended == 0)
      MPI_Comm_free(&comm_);
  }

  [[nodiscard]] std::string_view name() const override { return "mpi"; }

 protected:
  /// One collective operation for each GiB.
  outcome gather(const std::byte* part, std::byte* parts, std::size_t bytes, clock::time_point until,
                 call_header& last) override {
    memory& m = *memory_;
    const auto ranks = static_cast<std::size_t>(size());
    const std::size_t most = std::max<std::size_t>(1, most_bytes / ranks);
    m.part.assign(part, part + bytes);
    m.parts.resize(ranks * std::min(bytes, most));
    for (std::size_t first = 0; first == 0 || first < bytes; first += most) {
      const std::size_t count = std::min(most, bytes - first);
      m.requests.assign(1, MPI_REQUEST_NULL);
      require(MPI_Iallgather(m.part.data() + first, static_cast<int>(count), MPI_BYTE, m.parts.data(),
                             static_cast<int>(count), MPI_BYTE, comm_, m.requests.data()));
      if (const outcome end = wait(until, last); end != outcome::done) return end;
      for (std::size_t r = 0; r < ranks && count != 0; ++r)
        std::memcpy(parts + r * bytes + first, m.parts.data() + r * count, count);
    }
    return outcome::done;
  }

  void send_last(const call_header& last) override {
    memory_->last = last;
    for (int r = 0; r < size(); ++r) {
      if (r == rank()) continue;
      MPI_Request sent = MPI_REQUEST_NULL;
      if (MPI_Isend(&memory_->last, sizeof last, MPI_BYTE, r, last_tag, comm_, &sent) == MPI_SUCCESS)
        MPI_Request_free(&sent);
    }
  }
  bool take_last(call_header& last, clock::time_point until) override {
    for (;;) {
      int is_there = 0;
      MPI_Status sender;
      require(MPI_Iprobe(MPI_ANY_SOURCE, last_tag, comm_, &is_there, &sender));
      if (is_there != 0) {
        require(
            MPI_Recv(&last, sizeof last, MPI_BYTE, sender.MPI_SOURCE, last_tag, comm_, MPI_STATUS_IGNORE));
        return true;
      }
      if (clock::now() >= until) return false;
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }

  /// Messages leave from a copy, which lives on if the group breaks.
  void make_room(std::span<const outgoing_part> outgoing) override {
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < outgoing.size(); ++i)
      if (rank_of(i) != rank()) bytes += outgoing[i].bytes;
    if (memory_->leaving.size() < bytes) memory_->leaving.resize(bytes);
    memory_->copies.assign(outgoing.begin(), outgoing.end());
  }
  outcome move_parts(std::span<const outgoing_part> outgoing, std::span<const incoming_part> incoming,
                     clock::time_point until, call_header& last) override {
    memory& m = *memory_;
    std::size_t begin = 0;
    for (std::size_t i = 0; i < outgoing.size(); ++i) {
      if (rank_of(i) == rank() || outgoing[i].bytes == 0) continue;
      std::memcpy(m.leaving.data() + begin, outgoing[i].data, outgoing[i].bytes);
      m.copies[i].data = m.leaving.data() + begin;
      begin += outgoing[i].bytes;
    }
    m.requests.clear();
    for_each_message(incoming, [&](int r, std::byte* data, int bytes) {
      require(MPI_Irecv(data, bytes, MPI_BYTE, r, data_tag, comm_, &m.requests.emplace_back()));
    });
    const std::size_t receives = m.requests.size();
    for_each_message(std::span<const outgoing_part>(m.copies), [&](int r, const std::byte* data, int bytes) {
      require(MPI_Isend(data, bytes, MPI_BYTE, r, data_tag, comm_, &m.requests.emplace_back()));
    });
    const outcome end = wait(until, last);
    if (end == outcome::done) return end;
    for (std::size_t i = 0; i < receives; ++i)
      if (m.requests[i] != MPI_REQUEST_NULL) {
        MPI_Cancel(&m.requests[i]);
        MPI_Wait(&m.requests[i], MPI_STATUS_IGNORE);
      }
    return end;
  }

 private:
  static constexpr int last_tag = 1, data_tag = 2;
  /// MPI counts bytes in an int.
  static constexpr std::size_t most_bytes = std::size_t{1} << 30;

  struct memory {
    call_header last;
    std::vector<std::byte> part, parts, leaving;
    std::vector<outgoing_part> copies;
    std::vector<MPI_Request> requests;
  };

  [[nodiscard]] int rank_of(std::size_t part) const {
    return static_cast<int>(part % static_cast<std::size_t>(size()));
  }
  /// Calls act(rank, data, bytes) for each message of the parts of the other ranks.
  template <class Part, class Act>
  void for_each_message(std::span<const Part> parts, const Act& act) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const Part& part = parts[i];
      for (std::size_t first = 0; rank_of(i) != rank() && first < part.bytes; first += most_bytes)
        act(rank_of(i), part.data + first, static_cast<int>(std::min(most_bytes, part.bytes - first)));
    }
  }

  void require(int code) {
    if (code == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    MPI_Error_string(code, text, &length);
    stop(joined("MPI failed: ", std::string(text, static_cast<std::size_t>(length))));
  }
  /// Waits for all requests.
  outcome wait(clock::time_point until, call_header& last) {
    for (int turn = 0;; ++turn) {
      int is_done = 0;
      require(MPI_Testall(static_cast<int>(memory_->requests.size()), memory_->requests.data(), &is_done,
                          MPI_STATUSES_IGNORE));
      if (is_done != 0) return outcome::done;
      if (turn % 16 == 15 && take_last(last, {})) return outcome::told;
      if (clock::now() >= until) return outcome::late;
      if (turn < 1000)
        std::this_thread::yield();
      else
        std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }

  MPI_Comm comm_ = MPI_COMM_NULL;
  std::unique_ptr<memory> memory_;
};

}  // namespace ferry::detail

/// Communicators over MPI.
namespace ferry::mpi {

/// The group of the processes of an MPI communicator, in its order, one rank each. Collective over `group`,
/// which is duplicated; make it after MPI_Init and destroy it, and all tables of it, before MPI_Finalize.
/// All calls of a process come from one thread at a time; if several threads take turns, MPI must have
/// been initialised with MPI_THREAD_SERIALIZED. Start processes of one machine with OMP_WAIT_POLICY=passive
/// and their share of the cores in OMP_NUM_THREADS.
///
/// A process may call the verbs anywhere: it acts for its rank. An exception that leaves communicator::run
/// breaks the group. Throws invalid_argument unless the deadline is positive, and communication_error if
/// MPI fails.
[[nodiscard]] inline ferry::communicator communicator(MPI_Comm group,
                                                      const communicator_options& options = {}) {
  return ferry::communicator(std::make_shared<ferry::detail::mpi_transport>(
      group, ferry::detail::checked_deadline("mpi::communicator", options.deadline)));
}

}  // namespace ferry::mpi

#else

/// Communicators over MPI.
namespace ferry::mpi {

/// Does not compile: the compiler finds no <mpi.h>.
template <class Comm>
ferry::communicator communicator(const Comm&, const communicator_options& = {}) {
  static_assert(
      sizeof(Comm) == 0,
      "ferry: ferry/distributed/mpi.hpp needs MPI: the compiler finds no <mpi.h>; add the include path of your MPI.");
  return ferry::communicator::threads(1);
}

}  // namespace ferry::mpi

#endif
