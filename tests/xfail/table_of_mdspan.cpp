// SPDX-License-Identifier: Apache-2.0
// It says neither which space it is in nor how its rows lie.
// expected-errors: 1 tables and batches must be .* ferry::tensor_view\(pointer, rows, width\)
// most-lines: 30
#include <ferry/ferry.hpp>

#include <array>
#include <cstdint>
#include <vector>

/// As std::mdspan is, which not every compiler has.
struct mdspan {
  float* first;
  [[nodiscard]] float* data_handle() const { return first; }
  [[nodiscard]] std::array<int, 2> extents() const { return {10, 4}; }
  [[nodiscard]] int mapping() const { return 0; }
};

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 2, 4);
  const std::vector<std::int64_t> indices{1, 2};
  const mdspan rows{nullptr};
#ifdef FERRY_XFAIL_FIXED
  const ferry::tensor_view view(rows.data_handle(), rows.extents()[0], rows.extents()[1]);
  ferry::gather(exec, view, indices, batch).wait();
#else
  ferry::gather(exec, rows, indices, batch).wait();
#endif
}
