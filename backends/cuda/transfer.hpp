#pragma once

#include "error.hpp"

#include <Kokkos_Core.hpp>

#include <cuda_runtime.h>

#include <cstddef>

namespace ferry::cuda {

struct transfer_functions {
  static void copy_async(const Kokkos::Cuda& exec, const char*, void* to, const void* from,
                         std::size_t bytes) {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, exec.cuda_stream()), "cudaMemcpyAsync");
  }
  /// Copies of one batch may run in any order; the batch as a whole runs in the stream's.
  static void copy_batch_async(const Kokkos::Cuda& exec, const char* label, void* const* to,
                               const void* const* from, const std::size_t* bytes, std::size_t count) {
#if CUDART_VERSION >= 13000
    const cudaStream_t stream = exec.cuda_stream();
    if (count > 1 && stream != nullptr && stream != cudaStreamLegacy) {  // a batch can't go to that stream
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
  static void read(void* host, const void* device, std::size_t bytes) {
    copy_now(host, device, bytes, cudaMemcpyDeviceToHost);
  }
  static void write(void* device, const void* host, std::size_t bytes) {
    copy_now(device, host, bytes, cudaMemcpyHostToDevice);
  }

 private:
  /// On the thread's own stream: cudaMemcpy would first wait for all work of all streams, and is refused while
  /// one of them is being captured.
  static void copy_now(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
    check(cudaMemcpyAsync(to, from, bytes, kind, cudaStreamPerThread), "cudaMemcpyAsync");
    check(cudaStreamSynchronize(cudaStreamPerThread), "cudaStreamSynchronize");
  }
};

}  // namespace ferry::cuda
