// SPDX-License-Identifier: Apache-2.0
// A mean of the sums of ranks is no mean of the values.
// expected-error: under reduce::by_rank each rank sums its duplicates first, so it goes with duplicates::sum only
#include <ferry/distributed.hpp>

#include <vector>

void refused(const Kokkos::DefaultExecutionSpace& exec,
             ferry::sharded_table<float, ferry::mapped_space>& table, const std::vector<int>& indices,
             const ferry::tensor<float, ferry::mapped_space>& values) {
#ifdef FERRY_XFAIL_FIXED
  using counted = ferry::duplicates::sum;
#else
  using counted = ferry::duplicates::mean;
#endif
  ferry::scatter_add(exec, table, indices, values, ferry::reduce::by_rank{}, counted{}).wait();
}
