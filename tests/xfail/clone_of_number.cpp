// SPDX-License-Identifier: Apache-2.0
// A number is no array.
// expected-error: tables and batches must be a ferry::tensor
#include <ferry/ferry.hpp>

#include <cstdint>
#include <utility>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  const std::vector<float> list(4);
#ifdef FERRY_XFAIL_FIXED
  static_cast<void>(ferry::clone(exec, list));
#else
  static_cast<void>(ferry::clone(exec, 3));
#endif
}
