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
