// SPDX-License-Identifier: Apache-2.0
// Rows of a const tensor may only be read.
// expected-error: the verb writes to this array, but its elements are const
#include <ferry/ferry.hpp>

#include <cstdint>
#include <utility>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  const ferry::tensor<float, ferry::mapped_space> table("table", 4, 4);
  ferry::tensor<float, ferry::mapped_space> batch("batch", 4, 4);
  const std::vector<std::int64_t> indices{1, 2};
#ifdef FERRY_XFAIL_FIXED
  ferry::gather(exec, table, indices, batch.first(2)).wait();
#else
  ferry::gather(exec, table, indices, std::as_const(batch).first(2)).wait();
#endif
}
