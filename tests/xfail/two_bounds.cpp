// SPDX-License-Identifier: Apache-2.0
// A bad index is handled one way; a bundle counts.
// expected-error: at most one bounds policy may be given
#include <ferry/ferry.hpp>

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 2, 4);
  const std::vector<std::int64_t> indices{1, 2};
#ifdef FERRY_XFAIL_FIXED
  ferry::gather(exec, table, indices, batch, ferry::policies<ferry::bounds::clamp>{}).wait();
#else
  ferry::gather(exec, table, indices, batch, ferry::bounds::skip{}, ferry::policies<ferry::bounds::clamp>{})
      .wait();
#endif
}
