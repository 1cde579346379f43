// SPDX-License-Identifier: Apache-2.0
// Policies come last.
// expected-errors: 5 are the last arguments of a verb
// most-lines: 105
#include <ferry/bags.hpp>
#include <ferry/ferry.hpp>

#include <cstdint>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 2, 4);
  [[maybe_unused]] const std::vector<std::int64_t> indices{1, 2}, offsets{0, 1};
  const std::vector<float> weights{1, 1};
#ifdef FERRY_XFAIL_FIXED
  ferry::gather(exec, table, indices, batch, ferry::path::direct{}).wait();
  ferry::scatter(exec, table, indices, batch, ferry::bounds::skip{}).wait();
  ferry::copy(exec, batch, batch, ferry::path::direct{}).wait();
  ferry::gather_bags(exec, table, indices, offsets, batch, weights, ferry::pooling::sum{}).wait();
  static_cast<void>(ferry::make_plan(exec, indices, 10, ferry::bounds::skip{}));
#else
  ferry::gather(exec, table, indices, ferry::path::direct{}, batch).wait();
  ferry::scatter(exec, table, ferry::bounds::skip{}, indices, batch).wait();
  ferry::copy(exec, ferry::path::direct{}, batch, batch).wait();
  ferry::gather_bags(exec, table, indices, offsets, batch, ferry::pooling::sum{}, weights).wait();
  static_cast<void>(ferry::make_plan(exec, indices, ferry::bounds::skip{}, 10));
#endif
}
