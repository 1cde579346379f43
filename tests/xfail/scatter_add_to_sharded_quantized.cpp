// SPDX-License-Identifier: Apache-2.0
// A quantized row is replaced or trained as a whole.
// expected-error: scatter_add adds to rows of numbers
#include <ferry/distributed.hpp>
#include <ferry/ferry.hpp>
#include <ferry/quantized.hpp>

#include <vector>

void refused(const Kokkos::DefaultExecutionSpace& exec) {
  const std::vector<int> ids{0};
  const auto comm = ferry::communicator::threads(2);
  const ferry::tensor<float, ferry::pageable_space> values("values", 1, 32);
  ferry::sharded_quantized_table<ferry::quantization::mxfp8, ferry::pageable_space> table("table", comm, 1,
                                                                                          32);
#ifdef FERRY_XFAIL_FIXED
  const ferry::optim::sgd rule;
  auto state = ferry::optim::make_state(rule, table);
  ferry::scatter(exec, table, ids, values).wait();
  ferry::step(exec, rule, table, state, ids, values).wait();
#else
  ferry::scatter_add(exec, table, ids, values).wait();
#endif
}
