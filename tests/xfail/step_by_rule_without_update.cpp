// SPDX-License-Identifier: Apache-2.0
// Coefficients of a step are its update.
// expected-first-error: the verb needs an optimizer rule, ferry::optim::adam say; one of your own has the members
// most-lines: 20
#include <ferry/ferry.hpp>

#include <cstdint>
#include <string_view>
#include <vector>

struct own {
  static constexpr std::string_view name = "own";
};

void refused(const Kokkos::DefaultExecutionSpace& exec, ferry::tensor<float, ferry::mapped_space>& table,
             const ferry::tensor<float, ferry::mapped_space>& grads) {
  const std::vector<std::int64_t> indices{1, 2};
  auto state = ferry::optim::make_state(ferry::optim::sgd{}, table);
#ifdef FERRY_XFAIL_FIXED
  const ferry::optim::sgd rule{};
#else
  const own rule{};
#endif
  ferry::step(exec, rule, table, state, indices, grads).wait();
}
