// SPDX-License-Identifier: Apache-2.0
// The order of arguments is that of verbs on ordinary tables.
// expected-errors: 5 policies such as path::direct|the instance of the execution space comes first
// most-lines: 100
#include <ferry/bags.hpp>
#include <ferry/distributed.hpp>
#include <ferry/ferry.hpp>

#include <cstdint>
#include <vector>

using exec_space = Kokkos::DefaultExecutionSpace;
using table_type = ferry::sharded_table<float, ferry::device_space>;

void refused(const exec_space& exec, table_type& table) {
  const std::vector<std::int64_t> indices{1, 2}, offsets{0, 2};
  ferry::tensor<float, ferry::device_space> batch("batch", 2, 4), pooled("pooled", 1, 4);
  const ferry::optim::adam rule;
  auto state = ferry::optim::make_state(rule, table);
#ifdef FERRY_XFAIL_FIXED
  ferry::gather(exec, table, indices, batch, ferry::path::direct{}).wait();
  ferry::scatter(exec, table, indices, batch, ferry::path::direct{}).wait();
  ferry::scatter_add(exec, table, indices, batch, ferry::path::direct{}).wait();
  ferry::gather_bags(exec, table, indices, offsets, pooled, ferry::pooling::sum{}).wait();
  ferry::catch_up(exec, rule, table, state).wait();
#else
  ferry::gather(exec, table, indices, ferry::path::direct{}, batch).wait();
  ferry::scatter(exec, table, indices, ferry::path::direct{}, batch).wait();
  ferry::scatter_add(exec, table, indices, ferry::path::direct{}, batch).wait();
  ferry::gather_bags(exec, table, indices, offsets, ferry::pooling::sum{}, pooled).wait();
  ferry::catch_up(rule, exec, table, state).wait();
#endif
}
