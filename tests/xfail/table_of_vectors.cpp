// SPDX-License-Identifier: Apache-2.0
// Vectors own their elements, whose bytes alone a copy would take.
// expected-errors: 1 the elements of an array must be trivially copyable, because verbs copy their bytes
// most-lines: 30
#include <ferry/ferry.hpp>

#include <cstdint>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  std::vector<double> table(10), batch(2);
  std::vector<std::vector<double>> vectors(10), some(2);
  const std::vector<std::int64_t> indices{1, 2};
#ifdef FERRY_XFAIL_FIXED
  ferry::gather(exec, table, indices, batch).wait();
#else
  ferry::gather(exec, vectors, indices, some).wait();
#endif
}
