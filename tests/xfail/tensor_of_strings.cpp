// SPDX-License-Identifier: Apache-2.0
// Strings own memory.
// expected-first-error: the elements of a tensor must be trivially copyable
// most-lines: 20
#include <ferry/ferry.hpp>

#include <string>

void refused() {
#ifdef FERRY_XFAIL_FIXED
  using element = char;
#else
  using element = std::string;
#endif
  ferry::tensor<element, ferry::mapped_space> names("names", 10, 2);
  names(0, 0) = element{};
}
