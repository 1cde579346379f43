// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "enabled.hpp"

/// The sort of the device for the kernels of whoever includes this.
#if defined(FERRY_DEVICE_IS_CUDA)
#include "cuda/detail/sort_and_place.hpp"
#endif
