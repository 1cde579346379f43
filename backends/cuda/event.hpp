#pragma once

#include "capture.hpp"
#include "device.hpp"
#include "error.hpp"

#include <ferry/memory/detail/event.hpp>
#include <ferry/runtime/detail/event_pool.hpp>

#include <Kokkos_Core.hpp>

#include <cuda_runtime.h>

#include <memory>
#include <new>
#include <string>
#include <utility>

namespace ferry::cuda {

class stream_event final : public event {
 public:
  /// For streams of the current device; the first that it is recorded in may be of another one.
  stream_event() {
    check(cudaGetDevice(&device_), "cudaGetDevice");
    event_ = make();
  }
  stream_event(const stream_event&) = delete;
  stream_event& operator=(const stream_event&) = delete;
  ~stream_event() override {
    const device_guard on(device_, std::nothrow);
    cudaEventDestroy(event_);
  }

  /// In the stream of an instance. CUDA ties an event to one device and takes it in no stream of another, so
  /// one that a pool has kept from there is made anew.
  void record(const Kokkos::Cuda& exec) {
    const device_guard on(exec);
    if (device_ != exec.cuda_device()) {
      const cudaEvent_t made = make();
      cudaEventDestroy(std::exchange(event_, made));
      device_ = exec.cuda_device();
    }
    check(cudaEventRecord(event_, exec.cuda_stream()), "cudaEventRecord");
  }
  void wait() override {
    const device_guard on(device_);
    const capture_pause pause(true);
    check(cudaEventSynchronize(event_), "cudaEventSynchronize");
  }
  [[nodiscard]] bool ready() override {
    const device_guard on(device_);
    const capture_pause pause(true);
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
  static cudaEvent_t make() {
    cudaEvent_t made = nullptr;
    check(cudaEventCreateWithFlags(&made, cudaEventDisableTiming), "cudaEventCreateWithFlags");
    return made;
  }

  int device_ = -1;
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
  static std::shared_ptr<stream_event> take_event(const Kokkos::Cuda& exec,
                                                  event_pool<stream_event>& events) {
    const device_guard on(exec);  // where the pool is empty it makes events
    return events.take();
  }
  static void record_at(const Kokkos::Cuda& exec, stream_event& point) { point.record(exec); }

  /// On the device where the event is the device's own, else here.
  static void wait_for(const Kokkos::Cuda& exec, event& before) {
    const device_guard on(exec);
    if (auto* own = dynamic_cast<stream_event*>(&before))
      check(cudaStreamWaitEvent(exec.cuda_stream(), own->native(), 0), "cudaStreamWaitEvent");
    else
      before.wait();
  }

  static void fence(const Kokkos::Cuda& exec, const std::string& label) {
    const device_guard on(exec);
    exec.fence(label);
  }

  /// The stream's, which CUDA gives to no other stream later, as it does with the handle.
  static instance_id id_of(const Kokkos::Cuda& exec) {
    const device_guard on(exec);
    unsigned long long id = 0;
    check(cudaStreamGetId(exec.cuda_stream(), &id), "cudaStreamGetId");
    return id;
  }
};

}  // namespace ferry::cuda
