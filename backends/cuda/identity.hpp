// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device.hpp"
#include "error.hpp"

#include "../host/identity.hpp"

#include <ferry/error.hpp>
#include <ferry/runtime/detail/backend.hpp>

#include <cuda_runtime.h>

#include <string>

namespace ferry::cuda {

struct identity_functions {
  /// The name of the default device, the version of the driver if the system shows it, and its CUDA
  /// version.
  static device_id device_identity() {
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, default_device()), "cudaGetDeviceProperties");
    int version = 0;
    check(cudaDriverGetVersion(&version), "cudaDriverGetVersion");
    const std::string cuda = detail::joined("CUDA ", version / 1000, ".", version % 1000 / 10);
    const std::string driver = host::line_of("/sys/module/nvidia/version", "");
    return {properties.name, driver.empty() ? cuda : detail::joined(driver, " ", cuda)};
  }
};

}  // namespace ferry::cuda
