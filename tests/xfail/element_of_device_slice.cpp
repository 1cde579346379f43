// SPDX-License-Identifier: Apache-2.0
// A slice of device memory is no more for host code than the tensor.
// expected-error: host code can't rely on reaching elements in device_space; bring them to the host
#include <ferry/ferry.hpp>

#include <cstdint>
#include <utility>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  const ferry::tensor<float, ferry::pinned_space> near("near", 4, 4);
  const ferry::tensor<float, ferry::device_space> far("far", 4, 4);
#ifdef FERRY_XFAIL_FIXED
  static_cast<void>(near.first(2)(1, 2));
#else
  static_cast<void>(far.first(2)(1, 2));
#endif
}
