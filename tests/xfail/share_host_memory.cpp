// SPDX-License-Identifier: Apache-2.0
// A handle is of a device's memory.
// expected-error: share and open_shared are for memory of devices, in device_space
#include <ferry/distributed.hpp>

#ifdef FERRY_XFAIL_FIXED
using space = ferry::device_space;
#else
using space = ferry::pinned_space;
#endif

ferry::shared_handle refused() {
  const ferry::tensor<float, space> table("table", 10, 4);
  return ferry::share(table);
}
