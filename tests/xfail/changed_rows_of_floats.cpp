// SPDX-License-Identifier: Apache-2.0
// Numbers of rows that are no integers.
// expected-error: the changed rows must be int32, uint32, int64 or uint64 in host memory
#include <ferry/ferry.hpp>
#include <ferry/io.hpp>

#include <cstdint>
#include <vector>

void refused(ferry::io::checkpoint& run) {
#ifdef FERRY_XFAIL_FIXED
  run.mark_changed("weights", std::vector<std::int64_t>{1, 2});
#else
  run.mark_changed("weights", std::vector<float>{1, 2});
#endif
}
