// SPDX-License-Identifier: Apache-2.0
// A table over a file's pages is read-only.
// expected-error: the verb writes to this array, but its elements are const
#include <ferry/ferry.hpp>
#include <ferry/io.hpp>

#include <cstdint>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
#ifdef FERRY_XFAIL_FIXED
  auto table = ferry::io::load_npy<float>("w.npy");
#else
  auto table = ferry::io::map_npy<float>("w.npy");
#endif
  const ferry::tensor<float, ferry::device_space> batch("batch", 2, 4);
  const std::vector<std::int64_t> indices{1, 2};
  ferry::scatter(exec, table, indices, batch).wait();
}
