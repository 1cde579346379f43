// SPDX-License-Identifier: Apache-2.0
// The threads of the prefetcher would read memory that was freed.
// expected-error: a reference to the array is kept, so it can't be a temporary tensor, vector or array
#include <ferry/ferry.hpp>
#include <ferry/loader.hpp>

#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
#ifdef FERRY_XFAIL_FIXED
  const std::vector<float> table(10);
  static_cast<void>(ferry::samples_of(table));
#else
  static_cast<void>(ferry::samples_of(std::vector<float>(10)));
#endif
}
