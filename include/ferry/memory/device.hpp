// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace ferry {

/// A device by its number, as in ferry::devices(): that of the backend, so the one of CUDA on CUDA. A host
/// backend has the device 0, which is the host. -1, the default, is no device: of a tensor in host memory,
/// and in a request the device that Kokkos uses.
///
///   ferry::tensor<float, ferry::device_space> table("weights", ferry::device{1}, rows, 128);
struct device {
  int id = -1;  ///< the number, or -1

  /// True if both are the same device.
  friend constexpr bool operator==(const device&, const device&) = default;
};

}  // namespace ferry
