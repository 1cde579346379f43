// SPDX-License-Identifier: Apache-2.0
// Records have a label, as tensors do.
// expected-error: make_records takes the label of the table after the rule
#include <ferry/ferry.hpp>

#include <string>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
#ifdef FERRY_XFAIL_FIXED
  static_cast<void>(
      ferry::optim::make_records<float, ferry::pageable_space>(ferry::optim::adam{}, "weights", 10, 4));
#else
  ferry::optim::make_records<float, ferry::pageable_space>(ferry::optim::adam{}, 10, 4);
#endif
}
