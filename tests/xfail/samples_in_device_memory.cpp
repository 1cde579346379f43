// SPDX-License-Identifier: Apache-2.0
// Host threads read the samples.
// expected-error: the threads of a prefetcher read the samples, so their tables can't be in device_space
#include <ferry/ferry.hpp>
#include <ferry/loader.hpp>

#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  [[maybe_unused]] const ferry::tensor<float, ferry::device_space> samples("there", 10);
  [[maybe_unused]] const std::vector<float> table(10);
#ifdef FERRY_XFAIL_FIXED
  static_cast<void>(ferry::samples_of(table));
#else
  static_cast<void>(ferry::samples_of(samples));
#endif
}
