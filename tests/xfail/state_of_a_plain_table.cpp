// SPDX-License-Identifier: Apache-2.0
// The state of a sharded table is sharded, too.
// expected-error: a sharded table is stepped with the state that optim::make_state made for it
#include <ferry/distributed.hpp>
#include <ferry/ferry.hpp>

#include <cstdint>
#include <string>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
#ifdef FERRY_XFAIL_FIXED
  ferry::sharded_table<float, ferry::pageable_space> table("table", ferry::communicator::threads(2), 10, 4);
  ferry::tensor<float, ferry::pageable_space> grads("grads", 2, 4);
  const std::vector<std::int64_t> indices{1, 2};
  auto state = ferry::optim::make_state(ferry::optim::adam{}, table);
  ferry::step(Kokkos::DefaultHostExecutionSpace(), ferry::optim::adam{}, table, state, indices, grads).wait();
#else
  ferry::sharded_table<float, ferry::pageable_space> table("table", ferry::communicator::threads(2), 10, 4);
  const ferry::tensor<float, ferry::pageable_space> plain("plain", 10, 4);
  ferry::tensor<float, ferry::pageable_space> grads("grads", 2, 4);
  const std::vector<std::int64_t> indices{1, 2};
  auto state = ferry::optim::make_state(ferry::optim::adam{}, plain);
  ferry::step(Kokkos::DefaultHostExecutionSpace(), ferry::optim::adam{}, table, state, indices, grads).wait();
#endif
}
