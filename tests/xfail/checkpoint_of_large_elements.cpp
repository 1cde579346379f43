// SPDX-License-Identifier: Apache-2.0
// Elements that no piece of a checkpoint holds.
// expected-error: a checkpoint writes pieces of whole elements, so an element has at most 4 MiB
#include <ferry/ferry.hpp>
#include <ferry/io.hpp>

struct image {
#ifdef FERRY_XFAIL_FIXED
  char pixel[4 << 20];
#else
  char pixel[5 << 20];
#endif
};

void refused(ferry::io::checkpoint& run) {
  ferry::tensor<image, ferry::mapped_space> table("table", 10);
  run.add("images", table);
}
