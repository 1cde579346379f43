// SPDX-License-Identifier: Apache-2.0
// The steps would read factors that were freed.
// expected-error: a reference to the array is kept, so it can't be a temporary tensor, vector or array
#include <ferry/ferry.hpp>

#include <span>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
#ifdef FERRY_XFAIL_FIXED
  std::vector<float> factors(10);
  static_cast<void>(ferry::optim::row_rates(std::span(factors)));
#else
  static_cast<void>(ferry::optim::row_rates(std::vector<float>(10)));
#endif
}
