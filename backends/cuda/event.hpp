#pragma once

#include "error.hpp"

#include <ferry/execution/event_pool.hpp>
#include <ferry/memory/event.hpp>

#include <Kokkos_Core.hpp>

#include <cuda_runtime.h>

#include <memory>
#include <string>

namespace ferry::cuda {

class stream_event final : public event {
 public:
  stream_event() {
    check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  }
  stream_event(const stream_event&) = delete;
  stream_event& operator=(const stream_event&) = delete;
  ~stream_event() override { cudaEventDestroy(event_); }

  void record(cudaStream_t stream) { check(cudaEventRecord(event_, stream), "cudaEventRecord"); }
  void wait() override { check(cudaEventSynchronize(event_), "cudaEventSynchronize"); }
  [[nodiscard]] bool ready() override {
    const cudaError_t status = cudaEventQuery(event_);
    if (status == cudaErrorNotReady) {
      static_cast<void>(cudaGetLastError());  // no error: other code of this thread need not find it
      return false;
    }
    check(status, "cudaEventQuery");
    return true;
  }
  [[nodiscard]] cudaEvent_t native() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

struct event_functions {
  using native_event = stream_event;

  static event_handle record(const Kokkos::Cuda& exec, event_pool<stream_event>& events) {
    auto point = take_event(exec, events);
    record_at(exec, *point);
    return point;
  }
  /// The same in two steps, of which the second needs no memory.
  static std::shared_ptr<stream_event> take_event(const Kokkos::Cuda&, event_pool<stream_event>& events) {
    return events.take();
  }
  static void record_at(const Kokkos::Cuda& exec, stream_event& point) { point.record(exec.cuda_stream()); }

  /// On the device where the event is the device's own, else here.
  static void wait_for(const Kokkos::Cuda& exec, event& before) {
    if (auto* own = dynamic_cast<stream_event*>(&before))
      check(cudaStreamWaitEvent(exec.cuda_stream(), own->native(), 0), "cudaStreamWaitEvent");
    else
      before.wait();
  }

  static void fence(const Kokkos::Cuda& exec, const std::string& label) { exec.fence(label); }

  /// The stream's, which CUDA gives to no other stream later, as it does with the handle.
  static instance_id id_of(const Kokkos::Cuda& exec) {
    unsigned long long id = 0;
    check(cudaStreamGetId(exec.cuda_stream(), &id), "cudaStreamGetId");
    return id;
  }
};

}  // namespace ferry::cuda
