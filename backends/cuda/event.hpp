#pragma once

#include "error.hpp"

#include <ferry/memory/event.hpp>

#include <Kokkos_Core.hpp>

#include <cuda_runtime.h>

#include <memory>
#include <string>

namespace ferry::cuda {

class stream_event final : public event {
 public:
  explicit stream_event(cudaStream_t stream) {
    check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreateWithFlags");
    if (const cudaError_t status = cudaEventRecord(event_, stream); status != cudaSuccess) {
      cudaEventDestroy(event_);
      check(status, "cudaEventRecord");
    }
  }
  stream_event(const stream_event&) = delete;
  stream_event& operator=(const stream_event&) = delete;
  ~stream_event() override { cudaEventDestroy(event_); }

  void wait() override { check(cudaEventSynchronize(event_), "cudaEventSynchronize"); }
  [[nodiscard]] bool ready() override {
    const cudaError_t status = cudaEventQuery(event_);
    if (status == cudaErrorNotReady) return false;
    check(status, "cudaEventQuery");
    return true;
  }
  [[nodiscard]] cudaEvent_t native() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

struct event_functions {
  static event_handle record(const Kokkos::Cuda& exec) {
    return std::make_shared<stream_event>(exec.cuda_stream());
  }

  /// On the device where the event is the device's own, else here.
  static void wait_for(const Kokkos::Cuda& exec, event& before) {
    if (auto* own = dynamic_cast<stream_event*>(&before))
      check(cudaStreamWaitEvent(exec.cuda_stream(), own->native(), 0), "cudaStreamWaitEvent");
    else
      before.wait();
  }

  static void fence(const Kokkos::Cuda& exec, const std::string& label) { exec.fence(label); }
};

}  // namespace ferry::cuda
