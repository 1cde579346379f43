// SPDX-License-Identifier: Apache-2.0
// It is for one step count anyway.
// expected-error: catch_up takes no policy but rounding::nearest or rounding::stochastic
#include <ferry/ferry.hpp>

#include <cstdint>
#include <string_view>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  const ferry::optim::adam rule;
  auto state = ferry::optim::make_state(rule, table);
#ifdef FERRY_XFAIL_FIXED
  ferry::catch_up(exec, rule, table, state, ferry::rounding::nearest{}).wait();
#else
  ferry::catch_up(exec, rule, table, state, ferry::step_count::catch_up{}).wait();
#endif
}
