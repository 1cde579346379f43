// SPDX-License-Identifier: Apache-2.0
// The rows of an ordinary table belong to one rank.
// expected-error: path::exchange moves rows between the ranks of a sharded_table, so it serves gathers from sharded tables only
#include <ferry/ferry.hpp>

#include <vector>

void refused(const Kokkos::DefaultExecutionSpace& exec,
             const ferry::tensor<float, ferry::mapped_space>& table, const std::vector<int>& indices,
             ferry::tensor<float, ferry::mapped_space>& out) {
#ifdef FERRY_XFAIL_FIXED
  ferry::gather(exec, table, indices, out).wait();
#else
  ferry::gather(exec, table, indices, out, ferry::path::exchange{}).wait();
#endif
}
