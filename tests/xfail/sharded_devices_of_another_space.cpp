// SPDX-License-Identifier: Apache-2.0
// As for the instances of the ranks.
// expected-error: communicator::devices makes instances of Kokkos::DefaultExecutionSpace
#include <ferry/distributed.hpp>

struct another_space {};

void refused() {
#ifdef FERRY_XFAIL_FIXED
  static_cast<void>(ferry::communicator::devices({0}));
#else
  static_cast<void>(ferry::communicator::devices<another_space>({0}));
#endif
}
