// SPDX-License-Identifier: Apache-2.0
// The ranks of a group of devices have instances of the space that has devices.
// expected-error: communicator::exec gives instances of Kokkos::DefaultExecutionSpace
#include <ferry/distributed.hpp>

struct other_space {};

void refused(const ferry::communicator& comm) {
#ifdef FERRY_XFAIL_FIXED
  static_cast<void>(comm.exec(0));
#else
  static_cast<void>(comm.exec<other_space>(0));
#endif
}
