// SPDX-License-Identifier: Apache-2.0
// One index would be taken for a place in the memory.
// expected-error: ferry::tensor_view: one index for each extent
#include <ferry/ferry.hpp>

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::pageable_space, ferry::extents<ferry::dyn, 4>> table("table", 10);
#ifdef FERRY_XFAIL_FIXED
  static_cast<void>(table.view()(1, 2));
#else
  static_cast<void>(table.view()(1));
#endif
}
