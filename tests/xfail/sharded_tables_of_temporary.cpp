// SPDX-License-Identifier: Apache-2.0
// The list refers to its tables.
// expected-error: for_each_table refers to sharded tables
#include <ferry/bags.hpp>
#include <ferry/distributed.hpp>
#include <ferry/ferry.hpp>

void refused() {
  const auto comm = ferry::communicator::threads(2);
  using table_type = ferry::sharded_table<float, ferry::mapped_space>;
#ifdef FERRY_XFAIL_FIXED
  table_type table("table", comm, 10, 4);
  static_cast<void>(ferry::for_each_table(table));
#else
  static_cast<void>(ferry::for_each_table(table_type("table", comm, 10, 4)));
#endif
}
