// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <stdexcept>
#include <string>

namespace ferry_bench {

/// Only the CUDA sources of the benchmarks include this.
inline void check_cuda(cudaError_t status, const char* call) {
  if (status != cudaSuccess) throw std::runtime_error(std::string(call) + ": " + cudaGetErrorString(status));
}

}  // namespace ferry_bench
