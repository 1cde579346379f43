// SPDX-License-Identifier: Apache-2.0
#include <ferry/ferry.hpp>

#include <cstdint>

void gather_once(const Kokkos::DefaultExecutionSpace& exec,
                 const ferry::tensor<float, ferry::mapped_space>& table,
                 const ferry::tensor<std::int32_t, ferry::device_space>& indices,
                 ferry::tensor<float, ferry::device_space>& batch) {
#if defined(FERRY_USE_INSTANCES)
  ferry::gather(exec, table, indices, batch).wait();
#else
  ferry::gather(exec, table, indices, batch, ferry::bounds::check{}).wait();
#endif
}
