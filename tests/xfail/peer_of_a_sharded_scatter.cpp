// SPDX-License-Identifier: Apache-2.0
// Owners write their rows themselves, in the order of the ranks.
// expected-error: path::peer reads the shards of a sharded_table, so it serves gather from one alone
#include <ferry/distributed.hpp>

#include <vector>

void refused(const Kokkos::DefaultExecutionSpace& exec,
             ferry::sharded_table<float, ferry::mapped_space>& table) {
  ferry::tensor<float, ferry::device_space> batch("batch", 3, 4);
  const std::vector<int> indices{1, 2, 3};
#ifdef FERRY_XFAIL_FIXED
  ferry::scatter(exec, table, indices, batch).wait();
#else
  ferry::scatter(exec, table, indices, batch, ferry::path::peer{}).wait();
#endif
}
