// SPDX-License-Identifier: Apache-2.0
#include <ferry/ferry.hpp>

#include <cstdint>

void step_once(const Kokkos::DefaultExecutionSpace& exec, ferry::tensor<float, ferry::mapped_space>& table,
               const ferry::tensor<std::int32_t, ferry::device_space>& indices,
               const ferry::tensor<float, ferry::device_space>& grads) {
  const ferry::optim::adam adam;
  auto state = ferry::optim::make_state(adam, table);
#if defined(FERRY_USE_INSTANCES)
  ferry::step(exec, adam, table, state, indices, grads).wait();
#else
  ferry::step(exec, adam, table, state, indices, grads, ferry::duplicates::sum{}).wait();
#endif
}
