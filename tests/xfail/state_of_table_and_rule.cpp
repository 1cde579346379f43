// SPDX-License-Identifier: Apache-2.0
// The rule comes first, and no execution space.
// expected-errors: 3 make_state needs an optimizer rule, ferry::optim::adam say
// most-lines: 110
#include <ferry/ferry.hpp>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  const ferry::optim::adam rule;
#ifdef FERRY_XFAIL_FIXED
  static_cast<void>(ferry::optim::make_state(rule, table));
  static_cast<void>(ferry::optim::make_state<ferry::mapped_space>(rule, table));
#else
  static_cast<void>(ferry::optim::make_state(table, rule));
  static_cast<void>(ferry::optim::make_state(exec, rule, table));
  static_cast<void>(ferry::optim::make_state(rule));
  static_cast<void>(ferry::optim::make_state<ferry::mapped_space>(table, rule));
#endif
}
