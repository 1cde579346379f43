// SPDX-License-Identifier: Apache-2.0
// Eigen's default is column-major.
// expected-error: verbs that work on rows take row-major arrays only; .* the Eigen matrix Eigen::RowMajor
#include <ferry/ferry.hpp>
#include <ferry/interop/eigen.hpp>

#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultHostExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  const std::vector<int> indices{1, 2};
#ifdef FERRY_XFAIL_FIXED
  Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> rows(2, 4);
#else
  Eigen::MatrixXf rows(2, 4);
#endif
  ferry::gather(exec, table, indices, rows).wait();
}
