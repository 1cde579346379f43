// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "allocation.hpp"
#include "arithmetic.hpp"
#include "error.hpp"
#include "event.hpp"
#include "identity.hpp"
#include "interop.hpp"
#include "launch.hpp"
#include "several_devices.hpp"
#include "sort.hpp"
#include "transfer.hpp"
#include "tuning.hpp"

#include "../common.hpp"
#include "../host/backend.hpp"

#include <ferry/concepts/execution_space.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/runtime/detail/backend.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <string_view>
#include <type_traits>

namespace ferry {

/// The parts of the backend for an execution space of each kind: verbs on a host have ended when they return.
template <class Spaces, bool OnHost = Spaces::device_is_host>
struct kokkos_parts : kokkos::several_devices_functions,
                      kokkos::event_functions,
                      kokkos::identity_functions,
                      kokkos::launch_functions,
                      kokkos::arithmetic_functions {
  using scratch_space = device_space;
};
template <class Spaces>
struct kokkos_parts<Spaces, true> : host::several_devices_functions,
                                    host::event_functions,
                                    host::identity_functions,
                                    host::launch_functions,
                                    host::arithmetic_functions {
  using scratch_space = pageable_space;
};

/// The backend of Kokkos alone, for the device or the hosts of any Kokkos.
template <class Spaces>
struct kokkos_backend : kokkos_parts<Spaces>,
                        common::device_functions,
                        kokkos::allocation_functions<Spaces>,
                        kokkos::transfer_functions,
                        kokkos::interop_functions<Spaces>,
                        common::interprocess_functions,
                        common::capture_functions,
                        common::timeline_functions,
                        common::lane_functions,
                        kokkos::sort_functions,
                        common::atomic_functions,
                        common::encoding_functions {
  static constexpr std::string_view name = "kokkos";
  static constexpr bool device_is_host = Spaces::device_is_host;

  template <class Exec>
  static kokkos::tuning_numbers tuning(const Exec& exec) {
    constexpr int threads_of_multiprocessor = 2048;
    if constexpr (device_is_host)
      return {};
    else
      return kokkos::tuning_numbers{}.for_multiprocessors(
          std::max(1, static_cast<int>(exec.concurrency()) / threads_of_multiprocessor));
  }
  template <class Exec>
  static constexpr bool reaches_pageable(const Exec&) {
    return Kokkos::SpaceAccessibility<Exec, Kokkos::HostSpace>::accessible;
  }
};

}  // namespace ferry
