// SPDX-License-Identifier: Apache-2.0
// Owners pool and train rows of numbers.
// expected-errors: 2 for_each_table takes tables of one element type in one memory space
// most-lines: 30
#include <ferry/bags.hpp>
#include <ferry/distributed.hpp>
#include <ferry/ferry.hpp>
#include <ferry/quantized.hpp>

#include <vector>

void refused() {
  const auto comm = ferry::communicator::threads(2);
  ferry::sharded_table<float, ferry::mapped_space> table("table", comm, 10, 32);
  using quantized = ferry::sharded_quantized_table<ferry::quantization::mxfp8, ferry::mapped_space>;
  [[maybe_unused]] quantized codes("codes", comm, 10, 32);
  [[maybe_unused]] std::vector<quantized> range;
#ifdef FERRY_XFAIL_FIXED
  static_cast<void>(ferry::for_each_table(table));
#else
  static_cast<void>(ferry::for_each_table(codes));
  static_cast<void>(ferry::for_each_table(range));
#endif
}
