// SPDX-License-Identifier: Apache-2.0
#pragma once

#if __has_include(<mpi.h>)

#include <ferry/distributed/communicator/detail/message_transport.hpp>
#include <ferry/error.hpp>

#include <mpi.h>
#if defined(OPEN_MPI) && __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif

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

namespace ferry::detail {

/// True if MPI takes memory of devices, as it says itself. Open MPI and MPICH tell by different functions.
inline bool is_device_aware() {
#if defined(MPIX_CUDA_AWARE_SUPPORT)
  return MPIX_Query_cuda_support() == 1;
#elif defined(MPIX_GPU_SUPPORT_CUDA)
  int is_aware = 0;
  return MPIX_GPU_query_support(MPIX_GPU_SUPPORT_CUDA, &is_aware) == MPI_SUCCESS && is_aware != 0;
#else
  return false;
#endif
}

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
    memory_->headers.resize(static_cast<std::size_t>(ranks));
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
  [[nodiscard]] bool sends_device_memory() const override { return is_device_aware(); }

 protected:
  std::string swap_headers(const call_header& header, std::vector<call_header>& headers,
                           clock::time_point until) override {
    memory& m = *memory_;
    m.header = header;
    m.requests.clear();
    for (int r = 0; r < size(); ++r)
      if (r != rank())
        require(MPI_Irecv(&m.headers[static_cast<std::size_t>(r)], sizeof(call_header), MPI_BYTE, r,
                          header_tag, comm_, &m.requests.emplace_back()));
    send(m.header);
    std::string missing;
    if (wait(until)) {
      for (int r = 0; r < size(); ++r)
        if (r != rank()) headers[static_cast<std::size_t>(r)] = m.headers[static_cast<std::size_t>(r)];
      return missing;
    }
    for (int r = 0, place = 0; r < size(); ++r) {
      if (r == rank()) continue;
      int is_done = 0;
      require(MPI_Test(&m.requests[static_cast<std::size_t>(place++)], &is_done, MPI_STATUS_IGNORE));
      if (is_done == 0) missing += joined((missing.empty() ? "rank " : ", rank "), r);
    }
    return missing.empty() ? "a rank that does not receive" : missing;
  }

  void send_last(const call_header& last, clock::time_point until) override {
    memory_->last = last;
    memory_->requests.clear();
    send(memory_->last);
    (void)wait(until);
  }

  /// Messages leave from a copy, which lives on if the group breaks.
  void make_room(std::span<const outgoing_part> outgoing) override {
    std::size_t bytes = 0;
    for (std::size_t r = 0; r < outgoing.size(); ++r)
      if (static_cast<int>(r) != rank()) bytes += outgoing[r].bytes;
    if (memory_->leaving.size() < bytes) memory_->leaving.resize(bytes);
    memory_->copies.assign(outgoing.begin(), outgoing.end());
  }
  bool move_parts(std::span<const outgoing_part> outgoing, std::span<const incoming_part> incoming,
                  clock::time_point until) override {
    std::vector<std::byte>& leaving = memory_->leaving;
    std::vector<outgoing_part>& copies = memory_->copies;
    std::size_t begin = 0;
    for (std::size_t r = 0; r < outgoing.size(); ++r) {
      if (static_cast<int>(r) == rank() || outgoing[r].bytes == 0) continue;
      std::memcpy(leaving.data() + begin, outgoing[r].data, outgoing[r].bytes);
      copies[r].data = leaving.data() + begin;
      begin += outgoing[r].bytes;
    }
    return send_and_receive(copies, incoming, until);
  }
  /// The caller keeps the memory if the group breaks.
  bool move_device_parts(std::span<const outgoing_part> outgoing, std::span<const incoming_part> incoming,
                         clock::time_point until) override {
    return send_and_receive(outgoing, incoming, until);
  }

 private:
  static constexpr int header_tag = 1, data_tag = 2;
  /// MPI counts bytes in an int.
  static constexpr std::size_t most_bytes = std::size_t{1} << 30;

  struct memory {
    call_header header, last;
    std::vector<call_header> headers;
    std::vector<std::byte> leaving;
    std::vector<outgoing_part> copies;
    std::vector<MPI_Request> requests;
  };

  bool send_and_receive(std::span<const outgoing_part> outgoing, std::span<const incoming_part> incoming,
                        clock::time_point until) {
    auto& requests = memory_->requests;
    requests.clear();
    for_each_message(incoming, [&](int r, std::byte* data, int bytes) {
      require(MPI_Irecv(data, bytes, MPI_BYTE, r, data_tag, comm_, &requests.emplace_back()));
    });
    const std::size_t receives = requests.size();
    for_each_message(outgoing, [&](int r, const std::byte* data, int bytes) {
      require(MPI_Isend(data, bytes, MPI_BYTE, r, data_tag, comm_, &requests.emplace_back()));
    });
    if (wait(until)) return true;
    for (std::size_t i = 0; i < receives; ++i)
      if (requests[i] != MPI_REQUEST_NULL) {
        MPI_Cancel(&requests[i]);
        MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
      }
    return false;
  }
  /// Calls act(rank, data, bytes) for each message of the parts of the other ranks.
  template <class Part, class Act>
  void for_each_message(std::span<const Part> parts, const Act& act) {
    for (int r = 0; r < size(); ++r) {
      const Part& part = parts[static_cast<std::size_t>(r)];
      for (std::size_t first = 0; r != rank() && first < part.bytes; first += most_bytes)
        act(r, part.data + first, static_cast<int>(std::min(most_bytes, part.bytes - first)));
    }
  }

  void require(int code) {
    if (code == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    MPI_Error_string(code, text, &length);
    stop(joined("MPI failed: ", std::string(text, static_cast<std::size_t>(length))));
  }
  /// Waits for all requests; false if the time is over before.
  bool wait(clock::time_point until) {
    for (int turn = 0;; ++turn) {
      int is_done = 0;
      require(MPI_Testall(static_cast<int>(memory_->requests.size()), memory_->requests.data(), &is_done,
                          MPI_STATUSES_IGNORE));
      if (is_done != 0) return true;
      if (clock::now() >= until) return false;
      if (turn < 1000)
        std::this_thread::yield();
      else
        std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }
  void send(const call_header& header) {
    for (int r = 0; r < size(); ++r)
      if (r != rank())
        require(MPI_Isend(&header, sizeof(call_header), MPI_BYTE, r, header_tag, comm_,
                          &memory_->requests.emplace_back()));
  }

  MPI_Comm comm_ = MPI_COMM_NULL;
  std::unique_ptr<memory> memory_;
};

}  // namespace ferry::detail

#endif
