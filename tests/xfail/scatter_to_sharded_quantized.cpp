// SPDX-License-Identifier: Apache-2.0
// Shards of quantized rows are read; whole tables are quantized.
// expected-error: verbs that write rows take a sharded_table of floats
#include <ferry/distributed.hpp>
#include <ferry/ferry.hpp>
#include <ferry/quantized.hpp>

#include <vector>

void refused(const Kokkos::DefaultExecutionSpace& exec) {
  const std::vector<int> ids{0};
  const auto comm = ferry::communicator::threads(2);
  const ferry::tensor<float, ferry::pageable_space> values("values", 1, 32);
  ferry::sharded_table<float, ferry::pageable_space> floats("floats", comm, 1, 32);
  ferry::sharded_quantized_table<ferry::quantization::mxfp8, ferry::pageable_space> table("table", comm, 1,
                                                                                          32);
#ifdef FERRY_XFAIL_FIXED
  ferry::scatter(exec, floats, ids, values).wait();
  ferry::quantize(exec, floats, table).wait();
#else
  ferry::optim::sgd rule;
  auto state = ferry::optim::make_state(rule, floats);
  ferry::scatter(exec, table, ids, values).wait();
  ferry::scatter_add(exec, table, ids, values).wait();
  ferry::step(exec, rule, table, state, ids, values).wait();
#endif
}
