// SPDX-License-Identifier: Apache-2.0
// A deep copy is a verb.
// expected-first-error: a tensor is not copied by accident
// most-lines: 20
#include <ferry/ferry.hpp>

#include <utility>

void refused() {
  using array = ferry::tensor<float, ferry::mapped_space>;
  array table("table", 10, 4);
#ifdef FERRY_XFAIL_FIXED
  const array second = std::move(table);
#else
  const array second = table;
#endif
}
