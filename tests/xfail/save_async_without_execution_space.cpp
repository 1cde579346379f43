// SPDX-License-Identifier: Apache-2.0
// save_async without the instance whose work it comes after.
// expected-error: save_async takes the instance of a Kokkos execution space
#include <ferry/ferry.hpp>
#include <ferry/io.hpp>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec, ferry::io::checkpoint& run) {
#ifdef FERRY_XFAIL_FIXED
  run.save_async(exec).wait();
#else
  run.save_async(17).wait();
#endif
}
