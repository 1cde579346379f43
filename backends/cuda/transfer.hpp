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
    check(cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
  }
  static void write(void* device, const void* host, std::size_t bytes) {
    check(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
  }
};

}  // namespace ferry::cuda
