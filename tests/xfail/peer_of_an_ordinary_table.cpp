// SPDX-License-Identifier: Apache-2.0
// An ordinary table has no shards of other ranks.
// expected-error: path::peer reads the shards of a sharded_table
#include <ferry/ferry.hpp>

#include <vector>

void refused(const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 3, 4);
  const std::vector<int> indices{1, 2, 3};
#ifdef FERRY_XFAIL_FIXED
  ferry::gather(exec, table, indices, batch, ferry::path::direct{}).wait();
#else
  ferry::gather(exec, table, indices, batch, ferry::path::peer{}).wait();
#endif
}
