// SPDX-License-Identifier: Apache-2.0
// Host code must not rely on reaching device memory, also where it is the host's own.
// expected-error: host code can't rely on reaching elements in device_space; bring them to the host
#include <ferry/ferry.hpp>

#include <cstdint>
#include <utility>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> near("near", 4, 4);
  ferry::tensor<float, ferry::device_space> far("far", 4, 4);
#ifdef FERRY_XFAIL_FIXED
  near(1, 2) = 3.0F;
#else
  far(1, 2) = 3.0F;
#endif
}
