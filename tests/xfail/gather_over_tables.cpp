// SPDX-License-Identifier: Apache-2.0
// Verbs on rows take one table.
// expected-error: the tables of for_each_table serve gather_bags and step_bags alone
#include <ferry/bags.hpp>
#include <ferry/ferry.hpp>

#include <cstdint>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4), second("second", 9, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 1, 8);
  [[maybe_unused]] std::vector<std::int64_t> indices{1, 2, 3}, offsets{0, 2, 3};
  const ferry::optim::adam rule;
  std::vector<decltype(ferry::optim::make_state(rule, table))> states;
#ifdef FERRY_XFAIL_FIXED
  ferry::gather(exec, table, indices, batch).wait();
#else
  ferry::gather(exec, ferry::for_each_table(table, second), indices, batch).wait();
#endif
}
