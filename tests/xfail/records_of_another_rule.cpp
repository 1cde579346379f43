// SPDX-License-Identifier: Apache-2.0
// Each rule has records of its own.
// expected-error: step needs the state that make_state made for this optimizer, not for another one
#include <ferry/ferry.hpp>

#include <cstdint>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 2, 4);
  const std::vector<std::int64_t> indices{1, 2};
  auto records =
      ferry::optim::make_records<float, ferry::mapped_space>(ferry::optim::adam{}, "records", 10, 4);
#ifdef FERRY_XFAIL_FIXED
  ferry::step(exec, ferry::optim::adam{}, records, indices, batch).wait();
#else
  ferry::step(exec, ferry::optim::sgd{}, records, indices, batch).wait();
#endif
}
