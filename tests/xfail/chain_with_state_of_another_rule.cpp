// SPDX-License-Identifier: Apache-2.0
// The state is that of the rule inside.
// expected-error: step needs the state that make_state made for this optimizer, not for another one
#include <ferry/ferry.hpp>

#include <cstdint>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 2, 4);
  const std::vector<std::int64_t> indices{1, 2};
  const ferry::optim::chain rule{ferry::optim::adam{}, ferry::optim::clip_value{}};
  const ferry::optim::chain clipped_adagrad{ferry::optim::adagrad{}, ferry::optim::clip_value{}};
  auto state = ferry::optim::make_state(ferry::optim::adam{}, table);
#ifdef FERRY_XFAIL_FIXED
  ferry::step(exec, rule, table, state, indices, batch).wait();
#else
  ferry::step(exec, clipped_adagrad, table, state, indices, batch).wait();
#endif
}
