// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "allocation.hpp"
#include "arithmetic.hpp"
#include "detail/lanes.hpp"
#include "detail/registers.hpp"
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

#include <ferry/concepts/execution_space.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/runtime/detail/backend.hpp>

#include <string_view>

namespace ferry {

/// The backend for the host's cores. Every space is host memory, and every verb has ended when it returns.
struct host_backend : common::device_functions,
                      host::several_devices_functions,
                      host::allocation_functions,
                      host::transfer_functions,
                      host::event_functions,
                      host::identity_functions,
                      host::interop_functions,
                      common::interprocess_functions,
                      common::capture_functions,
                      common::timeline_functions,
                      common::lane_functions,
                      host::launch_functions,
                      host::sort_functions,
                      host::arithmetic_functions,
                      common::atomic_functions,
                      common::encoding_functions {
  static constexpr std::string_view name = "host";
  static constexpr bool device_is_host = true;
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

}  // namespace ferry
