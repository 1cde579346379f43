// SPDX-License-Identifier: Apache-2.0
// One table has one state.
// expected-errors: 2 the tables of for_each_table serve gather_bags alone
// most-lines: 45
#include <ferry/bags.hpp>
#include <ferry/ferry.hpp>

#include <cstdint>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 2, 4);
  [[maybe_unused]] const std::vector<std::int64_t> indices{1, 2}, offsets{0, 1};
  const ferry::optim::adam rule;
  auto state = ferry::optim::make_state(rule, table);
#ifdef FERRY_XFAIL_FIXED
  ferry::step_bags(exec, rule, table, state, indices, offsets, batch).wait();
  ferry::gather(exec, table, indices, batch).wait();
#else
  const auto tables = ferry::for_each_table(table);
  ferry::step_bags(exec, rule, tables, state, indices, offsets, batch).wait();
  ferry::gather(exec, tables, indices, batch).wait();
#endif
}
