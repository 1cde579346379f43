// SPDX-License-Identifier: Apache-2.0
// The list would refer to a table that was freed, of a range as of single tables.
// expected-error: a reference to the array is kept, so it can't be a temporary tensor, vector or array
#include <ferry/bags.hpp>
#include <ferry/ferry.hpp>

#include <span>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  using table = ferry::tensor<float, ferry::mapped_space>;
#ifdef FERRY_XFAIL_FIXED
  std::vector<table> tables;
  static_cast<void>(ferry::for_each_table(std::span(tables)));
#else
  static_cast<void>(ferry::for_each_table(std::vector<table>()));
#endif
}
