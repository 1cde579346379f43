// SPDX-License-Identifier: Apache-2.0
// The host's cores can't follow pointers into a device's own memory.
// expected-error: a host execution space can't dereference rows in device_space; pass an instance of the
// device's execution space
#include <ferry/ferry.hpp>

#include <cstdint>
#include <vector>

void refused() {
  const Kokkos::DefaultHostExecutionSpace host;
  ferry::tensor<float, ferry::pinned_space> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> far("far", 2, 4);
  ferry::tensor<float, ferry::pageable_space> near("near", 2, 4);
  const std::vector<std::int64_t> indices{1, 2};
#ifdef FERRY_XFAIL_FIXED
  ferry::gather(host, table, indices, near).wait();
#else
  ferry::gather(host, table, indices, far).wait();
#if !defined(KOKKOS_ENABLE_CUDA)
  // Without a device, its memory is the host's, and the program is legal: there is nothing to refuse.
#error \
    "a host execution space can't dereference rows in device_space; pass an instance of the device's execution space"
#endif
#endif
}
