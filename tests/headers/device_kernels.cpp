// SPDX-License-Identifier: Apache-2.0
// Kernels of each kind, for devices that are compiled for and not run: .ci/run compiles it for an AMD device.
#include <ferry/bags.hpp>
#include <ferry/cache.hpp>
#include <ferry/ferry.hpp>
#include <ferry/quantized.hpp>

#include <cstdint>
#include <vector>

int main(int argc, char** argv) {
  const Kokkos::ScopeGuard kokkos(argc, argv);
  const Kokkos::DefaultExecutionSpace exec;
  constexpr std::int64_t rows = 1000, width = 32, positions = 64;
  ferry::tensor<float, ferry::mapped_space> table("table", rows, width);
  ferry::tensor<float, ferry::device_space> near_rows("near_rows", rows, width);
  ferry::tensor<float, ferry::device_space> batch("batch", positions, width);
  ferry::tensor<std::int64_t, ferry::device_space> indices("indices", positions);
  ferry::init::uniform(exec, table, -0.5F, 0.5F, 42);
  ferry::init::constant(exec, indices, 7);

  ferry::gather(exec, table, indices, batch).wait();
  ferry::gather(exec, table, indices, batch, ferry::path::staged{}).wait();
  ferry::scatter(exec, near_rows, indices, batch).wait();
  ferry::scatter_add(exec, near_rows, indices, batch).wait();

  const auto adam = ferry::optim::adam{.lr = 1e-3};
  auto moments = ferry::optim::make_state(adam, table);
  const auto plan = ferry::make_plan(exec, indices, rows);
  ferry::step(exec, adam, table, moments, plan, batch).wait();

  const std::vector<std::int64_t> offsets{0, 10, positions};
  ferry::tensor<float, ferry::device_space> pooled("pooled", 2, width);
  ferry::gather_bags(exec, table, indices, offsets, pooled).wait();

  ferry::quantized_tensor<ferry::quantization::mxfp8, ferry::mapped_space> codes("codes", rows, width);
  ferry::quantize(exec, table, codes).wait();
  ferry::gather(exec, codes, indices, batch).wait();
  ferry::scatter(exec, codes, indices, batch).wait();

  auto coded_moments = ferry::optim::make_state(adam, codes);
  ferry::step(exec, adam, codes, coded_moments, plan, batch).wait();
  const auto rowwise = ferry::optim::rowwise_adagrad{.lr = 1e-3};
  auto row_sums = ferry::optim::make_state(rowwise, table);
  ferry::step(exec, rowwise, table, row_sums, indices, batch).wait();

  ferry::cached_table hot(table, ferry::cache::frequency{.rows = rows / 10, .refresh = 4});
  ferry::gather(exec, hot, indices, batch).wait();
  ferry::scatter(exec, hot, indices, batch).wait();
  return 0;
}
