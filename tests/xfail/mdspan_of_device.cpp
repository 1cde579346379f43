// SPDX-License-Identifier: Apache-2.0
// The default accessor is for code of the host.
// expected-error: an mdspan with the default accessor is for host code, which can't rely on reaching device_space
#include <ferry/ferry.hpp>
#include <ferry/interop/mdspan.hpp>

void refused() {
#ifdef FERRY_XFAIL_FIXED
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
#else
  ferry::tensor<float, ferry::device_space> table("table", 10, 4);
#endif
  static_cast<void>(ferry::to_mdspan(table));
}
