// SPDX-License-Identifier: Apache-2.0
// Owners combine the gradients of bags for rows of numbers.
// expected-error: step_bags trains a sharded_table of numbers
#include <ferry/distributed.hpp>
#include <ferry/ferry.hpp>
#include <ferry/quantized.hpp>

#include <vector>

void refused(const Kokkos::DefaultExecutionSpace& exec) {
  const std::vector<int> ids{0, 1};
  const auto comm = ferry::communicator::threads(2);
  const ferry::tensor<float, ferry::pageable_space> grads("grads", 1, 32);
#ifdef FERRY_XFAIL_FIXED
  ferry::sharded_table<float, ferry::pageable_space> table("table", comm, 2, 32);
#else
  ferry::sharded_quantized_table<ferry::quantization::mxfp8, ferry::pageable_space> table("table", comm, 2,
                                                                                          32);
#endif
  const ferry::optim::sgd rule;
  auto state = ferry::optim::make_state(rule, table);
  ferry::step_bags(exec, rule, table, state, ids, 2, grads).wait();
}
