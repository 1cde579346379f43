// SPDX-License-Identifier: Apache-2.0
// A step on a table over two ranks, and its checkpoint.
#include <ferry/distributed.hpp>
#include <ferry/ferry.hpp>
#include <ferry/io.hpp>

#include <cstdio>
#include <vector>

int main(int argc, char** argv) {
  Kokkos::ScopeGuard guard(argc, argv);
  const Kokkos::DefaultExecutionSpace exec;
  using space = ferry::pageable_space;
  const std::vector<int> indices{1, 2, 1};
  ferry::tensor<float, space> batch("batch", 3, 32);
  auto comm = ferry::communicator::threads(2);
  ferry::sharded_table<float, space> shards("shards", comm, 100, 32);
  ferry::init::constant(exec, shards, 2.0);
  ferry::gather(exec, shards, indices, batch).wait();
  const ferry::optim::sgd rule{.lr = 0.5};
  auto state = ferry::optim::make_state(rule, shards);
  ferry::step(exec, rule, shards, state, indices, batch).wait();
  ferry::io::checkpoint run(argv[1]);
  run.add("shards", shards);
  run.save();
  run.load();
  ferry::gather(exec, shards, indices, batch).wait();  // 2 - 0.5 * (2 + 2), 2 - 0.5 * 2

  std::printf("%g %g\n", static_cast<double>(batch(0, 0)), static_cast<double>(batch(1, 31)));
}
