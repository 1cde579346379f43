// SPDX-License-Identifier: Apache-2.0
#include <ferry/ferry.hpp>
#include <ferry/loader.hpp>

#include "check.hpp"

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

/// Prefetchers that live when Kokkos is finalized: finalize stops them, so no thread, instance or memory of
/// theirs outlives Kokkos. Afterwards next() says so, and the destructors have nothing left to do.
int main(int argc, char* argv[]) {
  Kokkos::initialize(argc, argv);
  using exec_space = Kokkos::DefaultExecutionSpace;
  static std::vector<std::int32_t> samples(1000, 3);
  using source = decltype(ferry::samples_of(samples));
  using table = ferry::tensor<float, ferry::mapped_space>;
  std::unique_ptr<ferry::prefetcher<exec_space, source>> batches;
  std::unique_ptr<ferry::row_prefetcher<exec_space, table, source>> rows;
  {
    const exec_space exec;
    auto weights = std::make_unique<table>("weights", 10, 4);
    ferry::init::zeros(exec, *weights);
    const ferry::prefetch_options options{.batch = 10, .workers = 2, .epochs = 0};
    batches =
        std::make_unique<ferry::prefetcher<exec_space, source>>(exec, ferry::samples_of(samples), options);
    rows = std::make_unique<ferry::row_prefetcher<exec_space, table, source>>(
        exec, *weights, ferry::samples_of(samples), options);
    for (int k = 0; k < 5; ++k) {
      FERRY_TEST_CHECK(batches->next().has_value());
      FERRY_TEST_CHECK(rows->next().has_value());
    }
    Kokkos::finalize();
  }
  const auto is_refused = [](auto& loader) {
    try {
      static_cast<void>(loader.next());
    } catch (const ferry::invalid_argument&) {
      return true;
    }
    return false;
  };
  FERRY_TEST_CHECK(is_refused(*batches));
  FERRY_TEST_CHECK(is_refused(*rows));
  batches = nullptr;
  rows = nullptr;
  return failures == 0 ? 0 : 1;
}
