// SPDX-License-Identifier: Apache-2.0
#pragma once

#if __has_include(<nccl.h>)

#include <ferry/distributed/communicator/communication_error.hpp>
#include <ferry/error.hpp>
#include <ferry/memory/detail/process_wide.hpp>
#include <ferry/tensor/half.hpp>

#include <nccl.h>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <type_traits>

namespace ferry::detail {

static_assert(NCCL_VERSION_CODE >= NCCL_VERSION(2, 18, 1),
              "ferry: ferry/distributed/nccl.hpp needs NCCL 2.18.1 or later.");

/// NCCL's name of an element type; ncclNumTypes if it has none.
template <class T>
consteval ncclDataType_t nccl_type() {
  if constexpr (std::is_same_v<T, float>)
    return ncclFloat32;
  else if constexpr (std::is_same_v<T, double>)
    return ncclFloat64;
  else if constexpr (std::is_same_v<T, half_t>)
    return ncclFloat16;
  else if constexpr (std::is_same_v<T, bhalf_t>)
    return ncclBfloat16;
  else if constexpr (std::integral<T> && sizeof(T) == 1)
    return std::is_signed_v<T> ? ncclInt8 : ncclUint8;
  else if constexpr (std::integral<T> && sizeof(T) == 4)
    return std::is_signed_v<T> ? ncclInt32 : ncclUint32;
  else if constexpr (std::integral<T> && sizeof(T) == 8)
    return std::is_signed_v<T> ? ncclInt64 : ncclUint64;
  else
    return ncclNumTypes;
}

/// NCCL's communicator of one rank, which never blocks: each wait ends by the deadline. A failure aborts it,
/// which also ends its kernels that wait for other ranks. Members are called with the rank's device current,
/// by one thread at a time.
class nccl_link {
 public:
  /// All ranks make theirs at the same time.
  nccl_link(int rank, int size, const ncclUniqueId& id, std::chrono::nanoseconds deadline)
      : deadline_(deadline) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    try {
      check(ncclCommInitRankConfig(&comm_, size, id, rank, &config), "ncclCommInitRankConfig");
      wait("ncclCommInitRankConfig", [] { return true; });
    } catch (...) {
      abort();
      throw;
    }
  }
  nccl_link(const nccl_link&) = delete;
  nccl_link& operator=(const nccl_link&) = delete;
  /// No operation is in flight: verbs wait for theirs, and for those of all ranks. So nothing is lost, and
  /// unlike ncclCommDestroy this waits for no rank that has died.
  ~nccl_link() {
    if (process_.is_here()) abort();
  }

  /// Enqueues the sum over the ranks, in place.
  template <class Queue>
  void enqueue_sum(void* data, std::int64_t count, ncclDataType_t type, Queue queue) {
    require_alive();
    check(ncclAllReduce(data, data, static_cast<std::size_t>(count), type, ncclSum, comm_, queue),
          "ncclAllReduce");
    wait("ncclAllReduce", [] { return true; });
  }
  /// Waits until NCCL has done what it was told and `ready()`.
  template <class Ready>
  void wait(const char* action, const Ready& ready) {
    using clock = std::chrono::steady_clock;
    const auto until = clock::now() + deadline_;
    for (int turn = 0;; ++turn) {
      ncclResult_t state = ncclSuccess;
      check(ncclCommGetAsyncError(comm_, &state), "ncclCommGetAsyncError");
      check(state, action);
      if (state != ncclInProgress && ready()) return;
      if (clock::now() >= until) {
        abort();
        const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(deadline_).count();
        throw communication_error(joined("ferry::nccl: ", action, " has not ended within ", ms,
                                         " ms, the deadline; it was aborted"));
      }
      if (turn < 1000)
        std::this_thread::yield();
      else
        std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }
  /// Ends all operations of this rank; later ones throw.
  void abort() noexcept {
    if (comm_ != nullptr) ncclCommAbort(comm_);
    comm_ = nullptr;
  }
  void require_alive() const {
    if (comm_ == nullptr)
      throw communication_error(
          "ferry::nccl: the communicator was aborted when an earlier call failed; make a new nccl::any_order");
  }

 private:
  void check(ncclResult_t code, const char* call) {
    if (code == ncclSuccess || code == ncclInProgress) return;
    std::string text = joined("ferry::nccl: ", call, " failed: ", ncclGetErrorString(code));
    if (const char* more = ncclGetLastError(comm_); more != nullptr && *more != 0)
      text.append(" (").append(more).append(")");
    abort();
    throw communication_error(text);
  }

  std::chrono::nanoseconds deadline_;
  ncclComm_t comm_ = nullptr;
  process_mark process_;
};

}  // namespace ferry::detail

#endif
