// SPDX-License-Identifier: Apache-2.0
// A new tensor holds elements only.
// expected-errors: 1 the elements of an array must be trivially copyable, because verbs copy their bytes
// most-lines: 30
#include <ferry/ferry.hpp>

#include <cstdint>
#include <string>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 2, 4);
  const std::vector<std::int64_t> indices{1, 2};
  const std::vector<std::string> names(10);
#ifdef FERRY_XFAIL_FIXED
  const auto got = ferry::gather<ferry::pinned_space>(exec, table, indices).get();
#else
  const auto got = ferry::gather<ferry::pinned_space>(exec, names, indices);
#endif
}
