// SPDX-License-Identifier: Apache-2.0
// A sum has no memory.
// expected-error: tables and batches must be a ferry::tensor
#include <ferry/ferry.hpp>
#include <ferry/interop/eigen.hpp>

#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultHostExecutionSpace& exec) {
  Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> table(10, 4);
  table.setZero();
  const std::vector<int> indices{1, 2};
  ferry::tensor<float, ferry::mapped_space> rows("rows", 2, 4);
#ifdef FERRY_XFAIL_FIXED
  ferry::gather(exec, table, indices, rows).wait();
#else
  ferry::gather(exec, table + table, indices, rows).wait();
#endif
}
