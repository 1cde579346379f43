// SPDX-License-Identifier: Apache-2.0
// Changes could not be written back.
// expected-error: a cached_table writes changes back, so its table must not be const
#include <ferry/cache.hpp>
#include <ferry/ferry.hpp>

void refused() {
#ifdef FERRY_XFAIL_FIXED
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
#else
  const ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
#endif
  const ferry::cached_table hot(table, ferry::cache::first{2});
}
