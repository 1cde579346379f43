// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device.hpp"
#include "error.hpp"

#include <Kokkos_Core.hpp>

#include <cuda_runtime.h>

#include <memory>
#include <utility>

/// Verbs on an instance whose stream is being captured into a graph.
namespace ferry::cuda {

/// Lets the calling thread allocate, query events and wait for them while a stream is being captured; none of
/// that becomes part of a graph. Without it, CUDA refuses these calls and invalidates the capture if the
/// thread itself captures a stream, or another thread does so with cudaStreamCaptureModeGlobal.
class capture_pause {
 public:
  explicit capture_pause(bool enabled) : enabled_(enabled) { exchange(); }
  capture_pause(const capture_pause&) = delete;
  capture_pause& operator=(const capture_pause&) = delete;
  ~capture_pause() { exchange(); }

 private:
  void exchange() {
    if (enabled_) cudaThreadExchangeStreamCaptureMode(&mode_);
  }
  bool enabled_;
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

struct capture_functions {
  using capture_pause = cuda::capture_pause;

  static bool capturing(const Kokkos::Cuda& exec) {
    const device_guard guard(exec);
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    check(cudaStreamIsCapturing(exec.cuda_stream(), &status), "cudaStreamIsCapturing");
    return status != cudaStreamCaptureStatusNone;
  }

  /// Passes the ownership of `resources` to the graph that the instance is being captured into, and to all
  /// executable graphs made of it. They drop them in a thread that must not call CUDA.
  static void retain(const Kokkos::Cuda& exec, std::shared_ptr<void> resources) {
    const device_guard guard(exec);
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    cudaGraph_t graph = nullptr;
    check(graph_of(exec.cuda_stream(), &status, &graph), "cudaStreamGetCaptureInfo");
    if (graph == nullptr) throw device_error("ferry: the capture of this stream has been invalidated");
    auto bundle = std::make_unique<std::shared_ptr<void>>(std::move(resources));
    cudaUserObject_t object = nullptr;
    check(cudaUserObjectCreate(&object, bundle.get(), &drop, 1, cudaUserObjectNoDestructorSync),
          "cudaUserObjectCreate");
    bundle.release();
    check(cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove), "cudaGraphRetainUserObject");
  }

 private:
  static void CUDART_CB drop(void* bundle) { delete static_cast<std::shared_ptr<void>*>(bundle); }

  static cudaError_t graph_of(cudaStream_t stream, cudaStreamCaptureStatus* status, cudaGraph_t* graph) {
#if CUDART_VERSION >= 13000
    return cudaStreamGetCaptureInfo(stream, status, nullptr, graph, nullptr, nullptr, nullptr);
#else
    return cudaStreamGetCaptureInfo_v2(stream, status, nullptr, graph, nullptr, nullptr);
#endif
  }
};

}  // namespace ferry::cuda
