// SPDX-License-Identifier: Apache-2.0
// Steps on 8-bit rows, whose tiles of codes GCC has to see the end of: compiled with warnings as errors.
#include <ferry/ferry.hpp>
#include <ferry/int8.hpp>

void step_codes(const Kokkos::DefaultExecutionSpace& exec,
                ferry::rowwise_int8_tensor<ferry::mapped_space>& codes, const ferry::row_plan& plan,
                const ferry::tensor<float, ferry::mapped_space>& grads) {
  const ferry::optim::sgd sgd{.lr = 0.1};
  auto of_sgd = ferry::optim::make_state(sgd, codes);
  ferry::step(exec, sgd, codes, of_sgd, plan, grads).wait();
  const ferry::optim::adam adam;
  auto of_adam = ferry::optim::make_state(adam, codes);
  ferry::step(exec, adam, codes, of_adam, plan, grads).wait();
}
