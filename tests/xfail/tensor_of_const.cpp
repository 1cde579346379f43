// SPDX-License-Identifier: Apache-2.0
// A tensor owns what it holds; a view may be of constants.
// expected-error: ferry::tensor: the element type must not be const; use a view for that
#include <ferry/ferry.hpp>

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
#ifdef FERRY_XFAIL_FIXED
  ferry::tensor<float, ferry::device_space> table;
  static_cast<void>(std::as_const(table).view());
#else
  ferry::tensor<const float, ferry::device_space> table;
#endif
}
