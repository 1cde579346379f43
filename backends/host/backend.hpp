// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "allocation.hpp"
#include "arithmetic.hpp"
#include "atomics.hpp"
#include "capture.hpp"
#include "detail/lanes.hpp"
#include "detail/registers.hpp"
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

#include <ferry/concepts/execution_space.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/runtime/detail/backend.hpp>

#include <string_view>

namespace ferry {

/// The backend for the host's cores. Every space is host memory, and every verb has ended when it returns.
struct host_backend : host::device_functions,
                      host::several_devices_functions,
                      host::allocation_functions,
                      host::transfer_functions,
                      host::event_functions,
                      host::identity_functions,
                      host::interop_functions,
                      host::interprocess_functions,
                      host::capture_functions,
                      host::timeline_functions,
                      host::lane_functions,
                      host::launch_functions,
                      host::sort_functions,
                      host::arithmetic_functions,
                      host::atomic_functions,
                      host::encoding_functions {
  static constexpr std::string_view name = "host";
  static constexpr bool device_is_host = true;
  /// The verbs of src/instances. Builds of samples leave them out: their tests call few of them.
#if defined(FERRY_WITHOUT_INSTANCES)
  static constexpr bool library_has_verbs = false;
#else
  static constexpr bool library_has_verbs = true;
#endif
  using scratch_space = pageable_space;
  template <class Exec>
  static constexpr host::tuning_numbers tuning(const Exec&) {
    return {};
  }
  template <class Exec>
  static bool reaches_pageable(const Exec&) {
    return true;
  }
};

template <HostExecutionSpace Exec>
struct execution_backend<Exec> : host_backend {};

}  // namespace ferry
