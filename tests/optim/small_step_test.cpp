// SPDX-License-Identifier: Apache-2.0
#include "support/arrays.hpp"
#include "support/oracle.hpp"
#include "support/random.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

/// Steps of small batches without a plan, which a device searches in one launch, give the bits of a plan.
namespace ferry_test::small_step_test {

namespace {

using device = ferry::device_space;

template <class T, class Rule, class... Policies>
void train_both(const Rule& rule, std::size_t width, Policies... policies) {
  auto random = generator(291);
  const exec_space exec;
  constexpr std::size_t rows = 2500;
  const auto start = values<T>(random, rows * width);
  auto searched = make<device>("weights", rows, width, start);
  auto planned = make<device>("weights", rows, width, start);
  auto state = ferry::optim::make_state(rule, searched);
  auto twin_state = ferry::optim::make_state(rule, planned);
  for (const std::size_t n : {1u, 32u, 100u, 513u, 1024u, 1025u}) {
    CAPTURE(width, n);
    auto ids = indices<std::int64_t>(random, n, n > 100 ? rows : 9);
    for (std::size_t p = 0; p < n; p += 5) ids[p] = 4;  // also more than sums in a kernel's own loop
    const auto grads = make<device>("grads", n, width, values<float>(random, n * width));
    ferry::step(exec, rule, searched, state, ids, grads, policies...).wait();
    ferry::step(exec, rule, planned, twin_state, ferry::make_plan(exec, ids, rows), grads, policies...)
        .wait();
    CHECK(same_bits(take(searched), take(planned)));
  }
  CHECK_FALSE(same_bits(take(searched), start));
  CHECK(state.fields() == twin_state.fields());
  for (int f = 0; f < state.fields(); ++f) CHECK(same_bits(take(state.field(f)), take(twin_state.field(f))));
}

}  // namespace

TEST_CASE("small steps without a plan give the bits of a plan", "[optim][step][search]") {
  for (const std::size_t width : {4u, 5u, 64u, 132u}) {
    train_both<float>(ferry::optim::sgd{.lr = 0.1}, width);
    train_both<float>(ferry::optim::adam{.lr = 1e-2}, width);
    train_both<float>(ferry::optim::adam{.lr = 1e-2, .amsgrad = true}, width);
    train_both<ferry::half_t>(ferry::optim::adagrad{.lr = 1e-2}, width, ferry::rounding::stochastic{});
    train_both<float>(ferry::optim::sgd{.lr = 0.1}, width, ferry::duplicates::mean{},
                      ferry::nonfinite::skip{});
  }
}

}  // namespace ferry_test::small_step_test
