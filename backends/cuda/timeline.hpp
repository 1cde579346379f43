// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "capture.hpp"
#include "device.hpp"
#include "error.hpp"

#include <ferry/memory/detail/process_wide.hpp>
#include <ferry/memory/detail/timed_work.hpp>

#include <Kokkos_Core.hpp>

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

/// Times of work in a stream, by the clock of the host. Used only while a trace is written.
namespace ferry::cuda {

/// An event with a time. Destroyed on any thread, also if the device is gone.
class timed_event {
 public:
  /// Makes an event of the current device.
  explicit timed_event(int device) : device_(device) { check(cudaEventCreate(&event_), "cudaEventCreate"); }
  timed_event(const timed_event&) = delete;
  timed_event& operator=(const timed_event&) = delete;
  ~timed_event() {
    const device_guard guard(device_, std::nothrow);
    if (cudaEventDestroy(event_) != cudaSuccess) cudaGetLastError();
  }
  void record(cudaStream_t stream) { check(cudaEventRecord(event_, stream), "cudaEventRecord"); }
  [[nodiscard]] cudaEvent_t native() const { return event_; }

 private:
  int device_;
  cudaEvent_t event_ = nullptr;
};

/// A moment that both clocks know: an event of the device, and the time of the host when it was recorded on
/// an idle stream. Good to some microseconds. Made anew every few seconds, because the runtime gives the time
/// between two events as a float of milliseconds.
struct anchor {
  explicit anchor(int device) : mark(device) {
    cudaStream_t stream = nullptr;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    cudaError_t status = cudaSuccess;
    for (int round = 0; round < 2 && status == cudaSuccess; ++round) {  // the first one starts the stream
      const std::int64_t before = detail::trace_now();
      status = cudaEventRecord(mark.native(), stream);
      if (status == cudaSuccess) status = cudaEventSynchronize(mark.native());
      host = before + (detail::trace_now() - before) / 2;
    }
    cudaStreamDestroy(stream);
    check(status, "cudaEventRecord");
  }
  timed_event mark;
  std::int64_t host = 0;
};

/// The newest anchor of each device. Thread-safe.
class anchors {
 public:
  static std::shared_ptr<const anchor> newest_of(int device) {
    static anchors& all_anchors = detail::process_wide<anchors>();
    constexpr std::int64_t life = 2'000'000'000;
    const std::lock_guard lock(all_anchors.guard_);
    const auto place = static_cast<std::size_t>(device);
    if (all_anchors.newest_.size() <= place) all_anchors.newest_.resize(place + 1);
    auto& newest = all_anchors.newest_[place];
    if (newest == nullptr || detail::trace_now() - newest->host > life)
      newest = std::make_shared<const anchor>(device);
    return newest;
  }

 private:
  std::mutex guard_;
  std::vector<std::shared_ptr<const anchor>> newest_;
};

class stream_timer final : public detail::timed_work {
 public:
  stream_timer(int device, cudaStream_t stream)
      : device_(device), since_(anchors::newest_of(device)), begin_(device), end_(device) {
    begin_.record(stream);
  }
  void stop(cudaStream_t stream) { end_.record(stream); }

  [[nodiscard]] bool ended() noexcept override {
    const device_guard guard(device_, std::nothrow);
    const capture_pause pause(true);
    const cudaError_t status = cudaEventQuery(end_.native());
    if (status != cudaSuccess) cudaGetLastError();
    return status != cudaErrorNotReady;
  }
  [[nodiscard]] bool times(std::int64_t& begin, std::int64_t& end) noexcept override {
    const device_guard guard(device_, std::nothrow);
    const capture_pause pause(true);
    float to_begin = 0, length = 0;
    if (cudaEventSynchronize(end_.native()) != cudaSuccess ||
        cudaEventElapsedTime(&to_begin, since_->mark.native(), begin_.native()) != cudaSuccess ||
        cudaEventElapsedTime(&length, begin_.native(), end_.native()) != cudaSuccess) {
      cudaGetLastError();
      return false;
    }
    begin = since_->host + static_cast<std::int64_t>(static_cast<double>(to_begin) * 1e6);
    end = begin + static_cast<std::int64_t>(static_cast<double>(length) * 1e6);
    return true;
  }

 private:
  int device_;
  std::shared_ptr<const anchor> since_;
  timed_event begin_, end_;
};

struct timeline_functions {
  /// For kernels: nanoseconds, by a clock that all of them share.
  KOKKOS_FORCEINLINE_FUNCTION static std::uint64_t clock_in_kernel() {
#if defined(__CUDA_ARCH__)
    std::uint64_t now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    return now;
#else
    return 0;
#endif
  }
  /// Begins to time what is enqueued from here on; null while the instance is being captured.
  static std::unique_ptr<detail::timed_work> start_timer(const Kokkos::Cuda& exec) {
    if (capture_functions::capturing(exec)) return nullptr;
    const device_guard guard(exec);
    const capture_pause pause(true);
    return std::make_unique<stream_timer>(exec.cuda_device(), exec.cuda_stream());
  }
  /// Ends it. False if a capture has begun meanwhile.
  static bool stop_timer(const Kokkos::Cuda& exec, detail::timed_work& timer) {
    if (capture_functions::capturing(exec)) return false;
    const device_guard guard(exec);
    static_cast<stream_timer&>(timer).stop(exec.cuda_stream());
    return true;
  }
};

}  // namespace ferry::cuda
