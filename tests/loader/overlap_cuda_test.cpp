// SPDX-License-Identifier: Apache-2.0
#include "support/test.hpp"
#include "support/waiting_kernel_cuda.hpp"
#include "support/watchdog.hpp"

#include <ferry/loader.hpp>

/// Batches travel while the instance that uses them computes.
namespace ferry_test::overlap_cuda_test {

TEST_CASE("batches arrive while the step before them computes", "[prefetcher]") {
  const watchdog dog("overlap");
  const auto instances = Kokkos::Experimental::partition_space(Kokkos::Cuda(), 1, 1);
  const Kokkos::Cuda& exec = instances[0];
  const Kokkos::Cuda& second = instances[1];
  constexpr std::size_t rows = 64, width = 33;
  auto random = generator();
  const auto x = values<float>(random, rows * width);
  const auto table = make<ferry::pinned_space>("x", rows, width, x);
  ferry::tensor<float, ferry::pinned_space> result("seen", 8, width);
  ferry::prefetcher batches(exec, ferry::samples_of(table), {.batch = 8, .depth = 4});
  auto batch = batches.next();
  REQUIRE(batch.has_value());
  waiting_kernel step(exec.cuda_stream(), 1);
  for (std::size_t k = 1; k < 4; ++k) {  // as many slots as there are: next() must not wait for the step
    batch = batches.next();
    REQUIRE(batch.has_value());
    ferry::copy(second, batch->get<0>(), result).wait();  // ordered after the transfer, not after the step
    REQUIRE(step.waits());
    bool same = true;  // read in place: the tests' take() fences, and would wait for the step
    for (std::size_t i = 0; i < 8 * width; ++i) same = same && result.data()[i] == x[8 * k * width + i];
    REQUIRE(same);
  }
  step.release();
  std::size_t rest = 0;
  while (batches.next()) ++rest;
  CHECK(rest == 4);
}

}  // namespace ferry_test::overlap_cuda_test
