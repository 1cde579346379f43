// SPDX-License-Identifier: Apache-2.0
// The work would write to memory that was freed.
// expected-error: the verb writes to a temporary tensor, vector or array
#include <ferry/ferry.hpp>

#include <vector>

void refused(const Kokkos::DefaultExecutionSpace& exec) {
  using batch = ferry::tensor<float, ferry::device_space>;
  ferry::tensor<float, ferry::mapped_space> table("table", 4, 4);
  const std::vector<int> indices(2);
#ifdef FERRY_XFAIL_FIXED
  batch out("batch", 2, 4);
  ferry::gather(exec, table, indices, out.first(2)).wait();
#else
  ferry::gather(exec, table, indices, batch("batch", 2, 4)).wait();
#endif
}
