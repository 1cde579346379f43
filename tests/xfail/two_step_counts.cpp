// SPDX-License-Identifier: Apache-2.0
// A row goes by one count.
// expected-error: at most one step_count policy may be given
#include <ferry/ferry.hpp>

#include <cstdint>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 2, 4);
  const std::vector<std::int64_t> indices{1, 2};
  const ferry::optim::adam rule;
  auto state = ferry::optim::make_state(rule, table);
#ifdef FERRY_XFAIL_FIXED
  ferry::step(exec, rule, table, state, indices, batch, ferry::step_count::per_row{}).wait();
#else
  ferry::step(exec, rule, table, state, indices, batch, ferry::step_count::per_row{},
              ferry::step_count::global{})
      .wait();
#endif
}
