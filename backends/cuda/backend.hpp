// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "allocation.hpp"
#include "arithmetic.hpp"
#include "atomics.hpp"
#include "capture.hpp"
#include "detail/abilities.hpp"
#include "device.hpp"
#include "encoding.hpp"
#include "error.hpp"
#include "event.hpp"
#include "identity.hpp"
#include "interop.hpp"
#include "interprocess.hpp"
#include "lanes.hpp"
#include "launch.hpp"
#include "several_devices.hpp"
#include "sort.hpp"
#include "timeline.hpp"
#include "transfer.hpp"
#include "tuning.hpp"

#include <ferry/memory/spaces.hpp>
#include <ferry/runtime/detail/backend.hpp>

#include <Kokkos_Core.hpp>

#include <string_view>

namespace ferry {

struct cuda_backend : cuda::device_functions,
                      cuda::several_devices_functions,
                      cuda::allocation_functions,
                      cuda::transfer_functions,
                      cuda::event_functions,
                      cuda::identity_functions,
                      cuda::interop_functions,
                      cuda::interprocess_functions,
                      cuda::capture_functions,
                      cuda::timeline_functions,
                      cuda::lane_functions,
                      cuda::block_functions,
                      cuda::launch_functions,
                      cuda::sort_functions,
                      cuda::arithmetic_functions,
                      cuda::atomic_functions,
                      cuda::encoding_functions {
  static constexpr std::string_view name = "cuda";
  static constexpr bool device_is_host = false;
  using scratch_space = device_space;
  static cuda::tuning_numbers tuning(const Kokkos::Cuda& exec) {
    const cudaDeviceProp& device = exec.cuda_device_prop();
    return cuda::tuning_for(cuda::generation_of(device), cuda::size_of(device));
  }
  /// True if kernels may dereference ordinary host memory (HMM or ATS).
  static bool reaches_pageable(const Kokkos::Cuda& exec) {
    return cuda::reaches_ordinary(exec.cuda_device());
  }
};

}  // namespace ferry
