// SPDX-License-Identifier: Apache-2.0
// Strings own their characters.
// expected-errors: 1 the elements of an array must be trivially copyable, because verbs copy their bytes
// most-lines: 30
#include <ferry/ferry.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 2, 4);
  const std::vector<std::int64_t> indices{1, 2};
  std::vector<std::string> names(2);
#ifdef FERRY_XFAIL_FIXED
  ferry::scatter(exec, table, indices, batch).wait();
#else
  ferry::scatter(exec, table, indices, std::span<std::string>(names)).wait();
#endif
}
