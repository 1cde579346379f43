// SPDX-License-Identifier: Apache-2.0
// Numbers of 8 bits are no weights.
// expected-error: step trains tables of float, double, half_t or bhalf_t elements, or of quantized rows
#include <ferry/ferry.hpp>

#include <cstdint>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<ferry::fp8_e4m3_t, ferry::mapped_space> codes("codes", 10, 4);
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 2, 4);
  const std::vector<std::int64_t> indices{1, 2};
  const ferry::optim::adam rule;
  auto state = ferry::optim::make_state<ferry::mapped_space, float>(rule, table);
#ifdef FERRY_XFAIL_FIXED
  ferry::step(exec, rule, table, state, indices, batch).wait();
#else
  ferry::step(exec, rule, codes, state, indices, batch).wait();
#endif
}
