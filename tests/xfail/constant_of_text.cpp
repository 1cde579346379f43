// SPDX-License-Identifier: Apache-2.0
// Text is neither an element nor a number.
// expected-error: init::constant needs a value of the array's element type, or numbers on both sides
#include <ferry/ferry.hpp>

#include <cstdint>
#include <utility>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 4, 4);
#ifdef FERRY_XFAIL_FIXED
  ferry::init::constant(exec, table, 3);
#else
  ferry::init::constant(exec, table, "three");
#endif
}
