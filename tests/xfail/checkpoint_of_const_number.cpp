// SPDX-License-Identifier: Apache-2.0
// load() could not write it.
// expected-errors: 2 must be a variable that is not const
// most-lines: 30
#include <ferry/ferry.hpp>
#include <ferry/io.hpp>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::io::checkpoint run("run.ckpt");
  [[maybe_unused]] const int epoch = 3;
#ifdef FERRY_XFAIL_FIXED
  int counted = epoch;
  run.add("epoch", counted);
#else
  run.add("epoch", epoch);
  run.add("one", 1);
#endif
}
