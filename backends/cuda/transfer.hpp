#pragma once

#include "capture.hpp"
#include "detail/copy_streams.hpp"
#include "device.hpp"
#include "error.hpp"

#include <Kokkos_Core.hpp>

#include <cuda_runtime.h>

#include <cstddef>

namespace ferry::cuda {

struct transfer_functions {
  static void copy_async(const Kokkos::Cuda& exec, const char*, void* to, const void* from,
                         std::size_t bytes) {
    const device_guard on(exec);
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, exec.cuda_stream()), "cudaMemcpyAsync");
  }
  /// Copies a batch. Its copies may run in any order; the batch as a whole runs in the order of the stream.
  static void copy_batch_async(const Kokkos::Cuda& exec, const char* label, void* const* to,
                               const void* const* from, const std::size_t* bytes, std::size_t count) {
    const device_guard on(exec);
#if CUDART_VERSION >= 13000
    const cudaStream_t stream = exec.cuda_stream();
    if (count > 1 && stream != nullptr && stream != cudaStreamLegacy) {  // the legacy stream takes none
      cudaMemcpyAttributes attributes{};
      attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
      std::size_t first = 0;
      check(cudaMemcpyBatchAsync(to, from, bytes, count, &attributes, &first, 1, stream),
            "cudaMemcpyBatchAsync");
      return;
    }
#endif
    for (std::size_t i = 0; i < count; ++i) copy_async(exec, label, to[i], from[i], bytes[i]);
  }
  /// Reads device memory that no work in flight writes. Ordered with no instance: the caller must have waited
  /// for earlier writes. Blocks.
  static void read(void* host, const void* device, std::size_t bytes) {
    copy_now(host, device, bytes, cudaMemcpyDeviceToHost);
  }
  /// Writes device memory that no work in flight uses. Blocks; work that is enqueued later sees the data.
  static void write(void* device, const void* host, std::size_t bytes) {
    copy_now(device, host, bytes, cudaMemcpyHostToDevice);
  }

 private:
  /// Copies on a stream of ferry and waits. cudaMemcpy, and a copy on cudaStreamPerThread, would first wait
  /// for all work of the legacy default stream. A capture_pause keeps the copy out of any capture of the
  /// process.
  static void copy_now(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
    const int device = default_device();
    const device_guard on(device);
    const capture_pause pause(true);
    const copy_stream stream(device);
    check(cudaMemcpyAsync(to, from, bytes, kind, stream.native()), "cudaMemcpyAsync");
    check(cudaStreamSynchronize(stream.native()), "cudaStreamSynchronize");
  }
};

}  // namespace ferry::cuda
