// SPDX-License-Identifier: Apache-2.0
// A sharded plan keeps what its execution space has sorted.
// expected-error: a sharded_plan serves verbs of the execution space that made it
#include <ferry/distributed.hpp>

#ifdef FERRY_XFAIL_FIXED
using planner = Kokkos::DefaultExecutionSpace;
#else
struct planner {};
#endif

void refused(const Kokkos::DefaultExecutionSpace& exec,
             const ferry::sharded_table<float, ferry::mapped_space>& table,
             const ferry::sharded_plan<planner>& plan, ferry::tensor<float, ferry::mapped_space>& out) {
  ferry::gather(exec, table, plan, out).wait();
}
