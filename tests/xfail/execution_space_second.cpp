// SPDX-License-Identifier: Apache-2.0
// It comes first, in every verb.
// expected-errors: 7 the instance of the execution space comes first
// most-lines: 140
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
  ferry::gather(exec, table, indices, batch).wait();
  ferry::gather_unique(exec, table, indices, batch).wait();
  ferry::scatter(exec, table, indices, batch).wait();
  ferry::step(exec, rule, table, state, indices, batch).wait();
  ferry::gather_bags(exec, table, indices, offsets, batch).wait();
  ferry::copy(exec, batch, batch).wait();
  ferry::init::uniform(exec, table, -1.0, 1.0, 7);
#else
  ferry::gather(table, exec, indices, batch).wait();
  ferry::gather_unique(table, exec, indices, batch).wait();
  ferry::scatter(table, indices, batch, exec).wait();
  ferry::step(rule, exec, table, state, indices, batch).wait();
  ferry::gather_bags(table, exec, indices, offsets, batch).wait();
  ferry::copy(table, table, exec).wait();
  ferry::init::uniform(table, exec, -1.0, 1.0, 7);
#endif
}
