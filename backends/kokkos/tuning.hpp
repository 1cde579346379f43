// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../device_tuning.hpp"

namespace ferry::kokkos {

/// No device has been measured with this backend.
using tuning_numbers = device_tuning;

}  // namespace ferry::kokkos
