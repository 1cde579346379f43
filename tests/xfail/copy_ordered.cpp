// SPDX-License-Identifier: Apache-2.0
// A copy has no indices that could be sorted.
// expected-error: copy moves whole arrays, so there are no rows to sort
#include <ferry/ferry.hpp>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::pinned_space> source("from", 10, 4);
  ferry::tensor<float, ferry::device_space> target("to", 10, 4);
#ifdef FERRY_XFAIL_FIXED
  ferry::copy(exec, source, target, ferry::path::direct{}).wait();
#else
  ferry::copy(exec, source, target, ferry::path::ordered{}).wait();
#endif
}
