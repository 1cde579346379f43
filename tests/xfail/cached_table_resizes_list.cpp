// SPDX-License-Identifier: Apache-2.0
// A number says nothing about which rows.
// expected-error: the rows of this cache policy are listed one by one; make another cached_table for other rows
#include <ferry/cache.hpp>
#include <ferry/ferry.hpp>

void refused() {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
#ifdef FERRY_XFAIL_FIXED
  ferry::cached_table hot(table, ferry::cache::first{2});
#else
  ferry::cached_table hot(table, ferry::cache::fixed{{1, 2}});
#endif
  hot.resize(3);
}
