// SPDX-License-Identifier: Apache-2.0
// It knows where its memory is, but no extents.
// expected-errors: 1 tables and batches must be .* ferry::tensor_view\(pointer, rows, width\)
// most-lines: 30
#include <ferry/ferry.hpp>

#include <cstdint>
#include <memory>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 2, 4);
  const std::vector<std::int64_t> indices{1, 2};
  const auto owner = std::make_unique<float[]>(40);
#ifdef FERRY_XFAIL_FIXED
  const ferry::tensor_view rows(owner.get(), 10, 4);
  ferry::gather(exec, rows, indices, batch).wait();
#else
  ferry::gather(exec, owner, indices, batch).wait();
#endif
}
