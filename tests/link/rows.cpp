// SPDX-License-Identifier: Apache-2.0
// One call of each part of the main library, on a table that is filled with one number.
#include <ferry/bags.hpp>
#include <ferry/cache.hpp>
#include <ferry/ferry.hpp>
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

  ferry::gather_bags(exec, table, indices, 3, pooled).wait();
  {
    ferry::cached_table hot(table, ferry::cache::first{4});
    ferry::gather(exec, hot, indices, batch).wait();
  }
  ferry::quantized_tensor<ferry::quantization::mxfp8, space> quantized("quantized", 100, 32);
  ferry::quantize(exec, table, quantized).wait();
  ferry::gather(exec, quantized, indices, batch).wait();
  const ferry::optim::sgd rule{.lr = 0.5};
  auto state = ferry::optim::make_state(rule, table);
  ferry::step(exec, rule, table, state, indices, batch).wait();
  ferry::gather(exec, table, indices, batch).wait();  // 2 - 0.5 * (2 + 2), 2 - 0.5 * 2

  std::printf("%g %g %g\n", static_cast<double>(pooled(0, 0)), static_cast<double>(batch(0, 0)),
              static_cast<double>(batch(1, 31)));
}
