// SPDX-License-Identifier: Apache-2.0
// Verbs take instances, tensors do not.
// expected-error: a tensor takes no execution space instance
#include <ferry/ferry.hpp>

#include <string>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
#ifdef FERRY_XFAIL_FIXED
  const ferry::tensor<float, ferry::pageable_space> table("table", 10, 4);
#else
  const ferry::tensor<float, ferry::pageable_space> table(exec, "table", 10, 4);
#endif
}
