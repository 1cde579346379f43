// SPDX-License-Identifier: Apache-2.0
// One ticket waits for the work.
// expected-first-error: a ticket is not copied
// most-lines: 20
#include <ferry/ferry.hpp>

#include <utility>

void refused() {
  ferry::ticket work;
#ifdef FERRY_XFAIL_FIXED
  ferry::ticket second = std::move(work);
#else
  ferry::ticket second = work;
#endif
  second.wait();
}
