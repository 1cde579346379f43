// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "several_devices.hpp"

#include <ferry/error.hpp>
#include <ferry/runtime/detail/backend.hpp>

#include <Kokkos_Core.hpp>

namespace ferry::kokkos {

struct identity_functions {
  /// The execution space, and the version of Kokkos, which knows no other name of the device.
  static device_id device_identity() {
    return {several_devices_functions::summary_of(0).name,
            detail::joined("Kokkos ", KOKKOS_VERSION / 10000, ".", KOKKOS_VERSION / 100 % 100, ".",
                           KOKKOS_VERSION % 100)};
  }
};

}  // namespace ferry::kokkos
