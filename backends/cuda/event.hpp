// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "capture.hpp"
#include "device.hpp"
#include "error.hpp"

#include <ferry/memory/detail/event.hpp>
#include <ferry/memory/detail/free_list.hpp>

#include <Kokkos_Core.hpp>

#include <cuda_runtime.h>

#include <memory>
#include <new>
#include <string>
#include <utility>

namespace ferry::cuda {

class stream_event final : public detail::event {
 public:
  /// Makes an event of the current device. record() makes a new one for a stream of another device.
  stream_event() {
    check(cudaGetDevice(&device_), "cudaGetDevice");
    event_ = make();
  }
  stream_event(const stream_event&) = delete;
  stream_event& operator=(const stream_event&) = delete;
  ~stream_event() override {
    const device_guard guard(device_, std::nothrow);
    cudaEventDestroy(event_);
  }

  /// Records the event in the stream of an instance. A CUDA event belongs to one device, so an event from the
  /// pool that belongs to another device is made anew.
  void record(const Kokkos::Cuda& exec) {
    const device_guard guard(exec);
    if (device_ != exec.cuda_device()) {
      const cudaEvent_t fresh = make();
      cudaEventDestroy(std::exchange(event_, fresh));
      device_ = exec.cuda_device();
    }
    check(cudaEventRecord(event_, exec.cuda_stream()), "cudaEventRecord");
  }
  void wait() override {
    const device_guard guard(device_);
    const capture_pause pause(true);
    check(cudaEventSynchronize(event_), "cudaEventSynchronize");
  }
  [[nodiscard]] bool ready() override {
    const device_guard guard(device_);
    const capture_pause pause(true);
    const cudaError_t status = cudaEventQuery(event_);
    if (status == cudaErrorNotReady) {
      static_cast<void>(cudaGetLastError());  // not an error: cleared for other code of this thread
      return false;
    }
    check(status, "cudaEventQuery");
    return true;
  }
  [[nodiscard]] cudaEvent_t native() const { return event_; }

 private:
  static cudaEvent_t make() {
    cudaEvent_t fresh = nullptr;
    check(cudaEventCreateWithFlags(&fresh, cudaEventDisableTiming), "cudaEventCreateWithFlags");
    return fresh;
  }

  int device_ = -1;
  cudaEvent_t event_ = nullptr;
};

struct event_functions {
  using native_event = stream_event;

  static detail::event_handle record(const Kokkos::Cuda& exec, detail::event_pool<stream_event>& events) {
    auto point = take_event(exec, events);
    record_at(exec, *point);
    return point;
  }
  /// record() in two steps; the second one needs no memory.
  static std::shared_ptr<stream_event> take_event(const Kokkos::Cuda& exec,
                                                  detail::event_pool<stream_event>& events) {
    const device_guard guard(exec);  // an empty pool makes events
    return events.take();
  }
  static void record_at(const Kokkos::Cuda& exec, stream_event& point) { point.record(exec); }

  /// Waits on the device for an event of the device, else in the calling thread.
  static void wait_for(const Kokkos::Cuda& exec, detail::event& before) {
    const device_guard guard(exec);
    if (auto* point = dynamic_cast<stream_event*>(&before))
      check(cudaStreamWaitEvent(exec.cuda_stream(), point->native(), 0), "cudaStreamWaitEvent");
    else
      before.wait();
  }

  static void fence(const Kokkos::Cuda& exec, const std::string& label) {
    const device_guard guard(exec);
    exec.fence(label);
  }

  static detail::stream_handle stream_of(const Kokkos::Cuda& exec) { return exec.cuda_stream(); }

  /// The id of the stream. Unlike its handle, CUDA does not reuse it for a later stream. Not for a stream
  /// that is being captured: CUDA refuses, and ends the capture.
  static detail::instance_id id_of(const Kokkos::Cuda& exec) {
    const device_guard guard(exec);
    unsigned long long id = 0;
    check(cudaStreamGetId(exec.cuda_stream(), &id), "cudaStreamGetId");
    return id;
  }
};

}  // namespace ferry::cuda
