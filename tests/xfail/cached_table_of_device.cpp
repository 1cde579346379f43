// SPDX-License-Identifier: Apache-2.0
// A table in device memory gains nothing.
// expected-error: a table in device_space needs none
#include <ferry/cache.hpp>
#include <ferry/ferry.hpp>

void refused() {
#ifdef FERRY_XFAIL_FIXED
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
#else
  ferry::tensor<float, ferry::device_space> table("table", 10, 4);
#endif
  const ferry::cached_table hot(table, ferry::cache::first{2});
}
