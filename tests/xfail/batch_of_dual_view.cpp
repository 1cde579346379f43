// SPDX-License-Identifier: Apache-2.0
// Which of the two views is meant?
// expected-errors: 1 tables and batches must be .* ferry::tensor_view\(pointer, rows, width\).*one of its two views
// most-lines: 30
#include <ferry/ferry.hpp>

#include <Kokkos_DualView.hpp>

#include <cstdint>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 2, 4);
  const std::vector<std::int64_t> indices{1, 2};
#ifdef FERRY_XFAIL_FIXED
  const Kokkos::View<float**, Kokkos::LayoutRight> rows("rows", 2, 4);
  ferry::gather(exec, table, indices, rows).wait();
#else
  Kokkos::DualView<float**, Kokkos::LayoutRight> rows("rows", 2, 4);
  ferry::gather(exec, table, indices, rows).wait();
#endif
}
