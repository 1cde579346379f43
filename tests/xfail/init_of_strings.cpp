// SPDX-License-Identifier: Apache-2.0
// Zeros for bytes are no empty strings.
// expected-errors: 1 the elements of an array must be trivially copyable, because verbs copy their bytes
// most-lines: 30
#include <ferry/ferry.hpp>

#include <string>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  std::vector<double> numbers(3);
  std::vector<std::string> names(3);
#ifdef FERRY_XFAIL_FIXED
  ferry::init::zeros(exec, numbers);
#else
  ferry::init::zeros(exec, names);
#endif
}
