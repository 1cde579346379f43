// SPDX-License-Identifier: Apache-2.0
// A number is no optimizer.
// expected-error: the first argument of optim::chain is an optimizer rule, ferry::optim::adam say
#include <ferry/ferry.hpp>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
#ifdef FERRY_XFAIL_FIXED
  static_cast<void>(ferry::optim::chain{ferry::optim::adam{}, ferry::optim::clip_norm{1.0}});
#else
  static_cast<void>(ferry::optim::chain{1, ferry::optim::clip_norm{1.0}});
#endif
}
