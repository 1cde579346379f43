// SPDX-License-Identifier: Apache-2.0
// What a handle names lies in a device's memory.
// expected-error: share and open_shared are for memory of devices, in device_space
#include <ferry/distributed.hpp>

#ifdef FERRY_XFAIL_FIXED
using space = ferry::device_space;
#else
using space = ferry::pageable_space;
#endif

std::size_t refused(const ferry::shared_handle& handle) {
  return ferry::open_shared<float, space>(handle).rows();
}
