// SPDX-License-Identifier: Apache-2.0
// A checkpoint, which is loaded again, and a prefetcher.
#include <ferry/ferry.hpp>
#include <ferry/io.hpp>
#include <ferry/loader.hpp>

#include <cstdio>

int main(int argc, char** argv) {
  Kokkos::ScopeGuard guard(argc, argv);
  const Kokkos::DefaultExecutionSpace exec;
  ferry::tensor<float, ferry::pinned_space> table("table", 100, 32);
  ferry::init::constant(exec, table, 2.0);
  ferry::io::checkpoint run(argv[1]);
  run.add("table", table);
  run.save();
  ferry::init::zeros(exec, table);
  run.load();
  ferry::prefetcher batches(exec, ferry::samples_of(table), {.batch = 50, .workers = 1, .epochs = 1});
  long rows = 0;
  while (auto next = batches.next()) rows += static_cast<long>(next->rows());

  std::printf("%g %ld\n", static_cast<double>(table(99, 31)), rows);
}
