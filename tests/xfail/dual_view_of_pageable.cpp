// SPDX-License-Identifier: Apache-2.0
// The device's side must be memory that the device reaches.
// expected-error: both sides of the DualView are the memory of the tensor, which must be in pinned_space or
// mapped_space
#include <ferry/ferry.hpp>
#include <ferry/interop/dual_view.hpp>

void refused() {
#ifdef FERRY_XFAIL_FIXED
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
#else
  ferry::tensor<float, ferry::pageable_space> table("table", 10, 4);
#endif
  static_cast<void>(ferry::to_dual_view(table));
}
