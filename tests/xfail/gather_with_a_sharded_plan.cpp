// SPDX-License-Identifier: Apache-2.0
// Such a plan has the routes of a batch between ranks.
// expected-error: a sharded_plan is for verbs on one sharded table; give this one the indices
#include <ferry/distributed.hpp>
#include <ferry/ferry.hpp>

#include <cstdint>
#include <vector>

using exec_space = Kokkos::DefaultExecutionSpace;

void refused(const exec_space& exec, [[maybe_unused]] const ferry::sharded_plan<exec_space>& plan) {
  const ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> out("out", 3, 4);
  [[maybe_unused]] const std::vector<std::int64_t> indices{1, 2, 3};
#ifdef FERRY_XFAIL_FIXED
  ferry::gather(exec, table, indices, out).wait();
#else
  ferry::gather(exec, table, plan, out).wait();
#endif
}
