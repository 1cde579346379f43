// SPDX-License-Identifier: Apache-2.0
// A sum has one order.
// expected-error: at most one reduce policy may be given
#include <ferry/distributed.hpp>

#include <vector>

void refused(const Kokkos::DefaultExecutionSpace& exec,
             ferry::sharded_table<float, ferry::mapped_space>& table, const std::vector<int>& indices,
             const ferry::tensor<float, ferry::mapped_space>& values) {
#ifdef FERRY_XFAIL_FIXED
  ferry::scatter_add(exec, table, indices, values, ferry::reduce::by_rank{}).wait();
#else
  ferry::scatter_add(exec, table, indices, values, ferry::reduce::by_rank{}, ferry::reduce::in_order{})
      .wait();
#endif
}
