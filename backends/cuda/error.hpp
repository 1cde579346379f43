// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>

#include <cuda_runtime.h>

#include <string>

namespace ferry::cuda {

/// Throws device_error, naming the call, unless the status is success. Clears the "last error" of the
/// runtime, so that it does not appear in a check of other code.
inline void check(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  cudaGetLastError();
  throw device_error(
      detail::joined("ferry: ", call, ": ", cudaGetErrorName(status), ", ", cudaGetErrorString(status)));
}

inline int attribute(cudaDeviceAttr name, int device) {
  int value = 0;
  check(cudaDeviceGetAttribute(&value, name, device), "cudaDeviceGetAttribute");
  return value;
}

}  // namespace ferry::cuda
