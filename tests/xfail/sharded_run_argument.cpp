// SPDX-License-Identifier: Apache-2.0
// The function of a run gets the number of its rank and an execution space instance, and nothing else.
// expected-error: communicator::run needs a function of the rank and its execution space instance
#include <ferry/distributed.hpp>

void refused(const ferry::communicator& comm) {
#ifdef FERRY_XFAIL_FIXED
  comm.run([](int) {});
#else
  comm.run([](int, int) {});
#endif
}
