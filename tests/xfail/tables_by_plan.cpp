// SPDX-License-Identifier: Apache-2.0
// A plan knows the rows of one table.
// expected-error: a plan is for tables of one number of rows
#include <ferry/bags.hpp>
#include <ferry/ferry.hpp>

#include <cstdint>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  const std::vector<std::int64_t> indices{1, 2, 3}, offsets{0, 2, 3};
  const ferry::tensor<float, ferry::mapped_space> second("other", 9, 4);
  ferry::tensor<float, ferry::device_space> pooled("pooled", 1, 8);
#ifdef FERRY_XFAIL_FIXED
  ferry::gather_bags(exec, ferry::for_each_table(table, second), indices, offsets, pooled).wait();
#else
  ferry::gather_bags(exec, ferry::for_each_table(table, second), ferry::make_plan(exec, indices, 9), offsets,
                     pooled)
      .wait();
#endif
}
