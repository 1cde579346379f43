// SPDX-License-Identifier: Apache-2.0
// Positions of maxima belong to one table.
// expected-error: under pooling::max call it once for each table
#include <ferry/bags.hpp>
#include <ferry/distributed.hpp>
#include <ferry/ferry.hpp>

#include <cstdint>
#include <vector>

void refused(const Kokkos::DefaultExecutionSpace& exec) {
  const auto comm = ferry::communicator::threads(2);
  ferry::sharded_table<float, ferry::mapped_space> table("table", comm, 10, 4), second("second", comm, 9, 4);
  const ferry::tensor<float, ferry::mapped_space> batch("batch", 1, 8);
  const std::vector<std::int64_t> indices{1, 2, 3}, offsets{0, 2, 3};
  const ferry::optim::adam rule;
  std::vector<decltype(ferry::optim::make_state(rule, table))> states;
  const auto tables = ferry::for_each_table(table, second);
#ifdef FERRY_XFAIL_FIXED
  ferry::step_bags(exec, rule, tables, states, indices, offsets, batch, ferry::pooling::sum{}).wait();
#else
  ferry::step_bags(exec, rule, tables, states, indices, offsets, batch, ferry::pooling::max{}).wait();
#endif
}
