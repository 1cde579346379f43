// SPDX-License-Identifier: Apache-2.0
// One call of each part of the library that src/ferry.cpp lists, on a table that is filled with one number.
#include <ferry/bags.hpp>
#include <ferry/cache.hpp>
#include <ferry/distributed.hpp>
#include <ferry/ferry.hpp>
#include <ferry/io.hpp>
#include <ferry/loader.hpp>
#include <ferry/quantized.hpp>

#include <cstdio>
#include <vector>

int main(int argc, char** argv) {
  Kokkos::ScopeGuard guard(argc, argv);
  const Kokkos::DefaultExecutionSpace exec;
  using space = ferry::pageable_space;
  const std::vector<int> indices{1, 2, 1};
  ferry::tensor<float, space> batch("batch", 3, 32), pooled("pooled", 1, 32);
  ferry::tensor<float, ferry::pinned_space> table("table", 100, 32);
  ferry::init::constant(exec, table, 2.0);

  ferry::gather(exec, table, indices, batch).wait();
  ferry::gather_bags(exec, table, indices, 3, pooled).wait();
  {
    ferry::cached_table hot(table, ferry::cache::first{4});
    ferry::gather(exec, hot, indices, batch).wait();
  }
  ferry::quantized_tensor<ferry::quantization::mxfp8, space> quantized("quantized", 100, 32);
  ferry::quantize(exec, table, quantized).wait();
  ferry::gather(exec, quantized, indices, batch).wait();

  auto comm = ferry::communicator::threads(2);
  ferry::sharded_table<float, space> shards("shards", comm, 100, 32);
  ferry::copy(exec, table, shards).wait();
  ferry::scatter(exec, shards, indices, batch).wait();
  const ferry::optim::sgd rule{.lr = 0.5};
  auto state = ferry::optim::make_state(rule, shards);
  ferry::step(exec, rule, shards, state, indices, batch).wait();
  ferry::gather(exec, shards, indices, batch).wait();  // 2 - 0.5 * (2 + 2), 2 - 0.5 * 2

  ferry::io::checkpoint run(argv[1]);
  run.add("table", table);
  run.save();
  run.load();
  ferry::prefetcher batches(exec, ferry::samples_of(table), {.batch = 50, .workers = 1, .epochs = 1});
  long rows = 0;
  while (auto next = batches.next()) rows += static_cast<long>(next->rows());

  std::printf("%g %g %g %ld\n", static_cast<double>(pooled(0, 0)), static_cast<double>(batch(0, 0)),
              static_cast<double>(batch(1, 31)), rows);
}
