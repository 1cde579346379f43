// SPDX-License-Identifier: Apache-2.0
// The memory would be gone before the slice is used.
// expected-error: a slice does not own memory, so it can't be one of a temporary tensor
#include <ferry/ferry.hpp>

#include <cstdint>
#include <utility>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  using table = ferry::tensor<float, ferry::mapped_space>;
#ifdef FERRY_XFAIL_FIXED
  table rows("table", 4, 4);
  static_cast<void>(rows.first(2));
#else
  static_cast<void>(table("table", 4, 4).first(2));
#endif
}
