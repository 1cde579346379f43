// SPDX-License-Identifier: Apache-2.0
// A plan knows the rows of one table, also if that is sharded.
// expected-error: a sharded_plan is for verbs on one sharded table; give this one the indices
#include <ferry/bags.hpp>
#include <ferry/distributed.hpp>
#include <ferry/ferry.hpp>

#include <cstdint>
#include <vector>

using exec_space = Kokkos::DefaultExecutionSpace;
using table_type = ferry::sharded_table<float, ferry::mapped_space>;

void refused(const exec_space& exec, const table_type& table, const table_type& second,
             [[maybe_unused]] const ferry::sharded_plan<exec_space>& plan) {
  [[maybe_unused]] const std::vector<std::int64_t> indices{1, 2, 3}, offsets{0, 2, 3};
  ferry::tensor<float, ferry::device_space> pooled("pooled", 1, 8);
#ifdef FERRY_XFAIL_FIXED
  ferry::gather_bags(exec, ferry::for_each_table(table, second), indices, offsets, pooled).wait();
#else
  ferry::gather_bags(exec, ferry::for_each_table(table, second), plan, offsets, pooled).wait();
#endif
}
