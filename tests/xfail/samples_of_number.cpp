// SPDX-License-Identifier: Apache-2.0
// Samples are rows of something.
// expected-error: samples_of takes arrays of rows: tensors, slices, Kokkos Views, spans or vectors
#include <ferry/ferry.hpp>
#include <ferry/loader.hpp>

#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  [[maybe_unused]] const std::vector<float> table(10);
#ifdef FERRY_XFAIL_FIXED
  static_cast<void>(ferry::samples_of(table));
#else
  static_cast<void>(ferry::samples_of(3));
#endif
}
