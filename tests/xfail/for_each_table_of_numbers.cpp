// SPDX-License-Identifier: Apache-2.0
// They have no rows.
// expected-errors: 3 for_each_table takes tables of one element type in one memory space
// most-lines: 40
#include <ferry/bags.hpp>
#include <ferry/ferry.hpp>
#include <ferry/int8.hpp>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  [[maybe_unused]] ferry::rowwise_int8_tensor<ferry::mapped_space> codes("codes", 10, 4);
#ifdef FERRY_XFAIL_FIXED
  static_cast<void>(ferry::for_each_table(table));
#else
  static_cast<void>(ferry::for_each_table());
  static_cast<void>(ferry::for_each_table(1, 2));
  static_cast<void>(ferry::for_each_table(codes));
#endif
}
