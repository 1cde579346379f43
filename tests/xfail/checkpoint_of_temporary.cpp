// SPDX-License-Identifier: Apache-2.0
// The save would read elements that were freed.
// expected-error: a reference to the array is kept, so it can't be a temporary tensor, vector or array
#include <ferry/ferry.hpp>
#include <ferry/io.hpp>

#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::io::checkpoint run("run.ckpt");
#ifdef FERRY_XFAIL_FIXED
  std::vector<float> list(10);
  run.add("list", list);
#else
  run.add("list", std::vector<float>(10));
#endif
}
