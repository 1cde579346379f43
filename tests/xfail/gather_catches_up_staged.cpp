// SPDX-License-Identifier: Apache-2.0
// Rows that are computed do not travel.
// expected-error: a gather that catches up computes the rows where the kernels run: path::direct alone
#include <ferry/ferry.hpp>

#include <cstdint>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 2, 4);
  const std::vector<std::int64_t> indices{1, 2};
  const ferry::optim::adam rule;
  auto state = ferry::optim::make_state(rule, table);
#ifdef FERRY_XFAIL_FIXED
  ferry::gather(exec, rule, table, state, indices, batch, ferry::path::direct{}).wait();
#else
  ferry::gather(exec, rule, table, state, indices, batch, ferry::path::staged{}).wait();
#endif
}
