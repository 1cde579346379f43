// SPDX-License-Identifier: Apache-2.0
// A table over a file can only be read.
// expected-error: the backing table of this cached_table is read-only
#include <ferry/cache.hpp>
#include <ferry/ferry.hpp>
#include <ferry/io.hpp>

void refused(const Kokkos::DefaultExecutionSpace& exec) {
#ifdef FERRY_XFAIL_FIXED
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
#else
  auto table = ferry::io::map_npy<float>("table.npy");
#endif
  ferry::cached_table hot(table, ferry::cache::first{2});
  ferry::tensor<float, ferry::device_space> rows("rows", 1, 4);
  ferry::scatter(exec, hot, std::vector{1}, rows).wait();
}
