// SPDX-License-Identifier: Apache-2.0
// Eigen runs on the host.
// expected-error: Eigen computes on the host, which can't rely on reaching device_space
#include <ferry/ferry.hpp>
#include <ferry/interop/eigen.hpp>

void refused() {
#ifdef FERRY_XFAIL_FIXED
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
#else
  ferry::tensor<float, ferry::device_space> table("table", 10, 4);
#endif
  ferry::to_eigen(table).setZero();
}
