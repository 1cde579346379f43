#pragma once

#include <ferry/error.hpp>

#include <cuda_runtime.h>

#include <string>

namespace ferry::cuda {

/// Throws device_error, naming the call. The runtime's sticky "last error" is taken along, so that it does
/// not surface in somebody else's check.
inline void check(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  cudaGetLastError();
  throw device_error(std::string("ferry: ") + call + ": " + cudaGetErrorName(status) + ", " +
                     cudaGetErrorString(status));
}

inline int attribute(cudaDeviceAttr which, int device) {
  int value = 0;
  check(cudaDeviceGetAttribute(&value, which, device), "cudaDeviceGetAttribute");
  return value;
}

}  // namespace ferry::cuda
