// SPDX-License-Identifier: Apache-2.0
// A rank has a device of its own choice.
// expected-first-error: communicator::devices takes the ids of devices
// most-lines: 20
#include <ferry/distributed.hpp>

void refused() {
#ifdef FERRY_XFAIL_FIXED
  const auto comm = ferry::communicator::devices({0, 1});
#else
  const auto comm = ferry::communicator::devices(2);
#endif
}
