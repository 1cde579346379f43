// SPDX-License-Identifier: Apache-2.0
// A sharded_plan sorts what travels to the owners; path::peer reads by the rows of the batch.
// expected-error: path::peer takes indices or a row_plan
#include <ferry/distributed.hpp>

#include <vector>

void refused(const Kokkos::DefaultExecutionSpace& exec,
             const ferry::sharded_table<float, ferry::mapped_space>& table) {
  ferry::tensor<float, ferry::device_space> batch("batch", 3, 4);
  const std::vector<int> indices{1, 2, 3};
#ifdef FERRY_XFAIL_FIXED
  ferry::gather(exec, table, ferry::make_plan(exec, indices, 10), batch, ferry::path::peer{}).wait();
#else
  ferry::gather(exec, table, ferry::make_plan(exec, indices, table), batch, ferry::path::peer{}).wait();
#endif
}
