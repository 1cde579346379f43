// SPDX-License-Identifier: Apache-2.0
#include "support/test.hpp"

/// Steps of sgd with duplicates::sum_any_order.
namespace ferry_test::step_any_order_test {

using any_order = ferry::duplicates::sum_any_order;

struct batch {
  std::size_t rows, width;
  std::vector<std::int64_t> indices;
  std::vector<float> table, grads;
};

/// Gradients whose multiples of 1/8 are exact.
batch random_batch(std::size_t n, std::size_t rows, std::size_t width) {
  auto random = generator(n * 17 + width);
  batch result{rows, width, std::vector<std::int64_t>(n), std::vector<float>(rows * width),
               std::vector<float>(n * width)};
  for (auto& i : result.indices) i = static_cast<std::int64_t>(random() % rows);
  for (auto& x : result.table) x = static_cast<float>(random() % 9);
  for (auto& x : result.grads) x = static_cast<float>(random() % 5) - 2.0f;
  return result;
}

/// The weights after steps with `policies`.
template <class Space, class... Policies>
std::vector<float> weights_after(const batch& input, const ferry::optim::sgd& rule, int steps,
                                 Policies... policies) {
  const exec_space exec;
  auto table = make<Space>("table", input.rows, input.width, input.table);
  auto state = ferry::optim::make_state(rule, table);
  const auto grads = make<ferry::device_space>("grads", input.indices.size(), input.width, input.grads);
  for (int s = 0; s < steps; ++s)
    ferry::step(exec, rule, table, state, input.indices, grads, policies...).wait();
  CHECK(state.steps() == steps);
  return take(table);
}

TEMPLATE_TEST_CASE("an exact step of sgd has the same bits in any order", "[any_order]", ferry::device_space,
                   ferry::pinned_space, ferry::pageable_space) {
  for (const bool up : {false, true})
    for (const std::size_t width : {1u, 4u, 7u, 64u})
      for (const std::size_t n : {1u, 50u, 2500u}) {
        CAPTURE(up, width, n);
        const auto input = random_batch(n, 41, width);
        auto expected = input.table;
        for (int s = 0; s < 2; ++s)
          for (std::size_t p = 0; p < n; ++p)
            for (std::size_t c = 0; c < width; ++c)
              expected[static_cast<std::size_t>(input.indices[p]) * width + c] +=
                  (up ? 0.125f : -0.125f) * input.grads[p * width + c];
        const ferry::optim::sgd rule{.lr = 0.125, .maximize = up};
        CHECK(weights_after<TestType>(input, rule, 2, any_order{}) == expected);
        if (direct_runs<TestType>())
          CHECK(weights_after<TestType>(input, rule, 2, any_order{}, ferry::path::ordered{}) == expected);
      }
}

TEST_CASE("with momentum or weight decay the order is that of the batch", "[any_order]") {
  const auto input = random_batch(700, 30, 9);
  for (const auto& rule :
       {ferry::optim::sgd{.lr = 0.1, .momentum = 0.9}, ferry::optim::sgd{.lr = 0.1, .weight_decay = 0.1}})
    CHECK(weights_after<ferry::device_space>(input, rule, 3, any_order{}) ==
          weights_after<ferry::device_space>(input, rule, 3));
}

TEST_CASE("gradients are checked before a step in any order", "[any_order]") {
  auto input = random_batch(64, 10, 8);
  input.grads[100] = std::numeric_limits<float>::infinity();
  const exec_space exec;
  auto table = make<ferry::device_space>("table", input.rows, input.width, input.table);
  const ferry::optim::sgd rule{.lr = 0.125};
  auto state = ferry::optim::make_state(rule, table);
  const auto grads = make<ferry::device_space>("grads", input.indices.size(), input.width, input.grads);
  CHECK_THROWS_AS(
      ferry::step(exec, rule, table, state, input.indices, grads, any_order{}, ferry::nonfinite::reject{})
          .wait(),
      ferry::invalid_argument);
  CHECK(take(table) == input.table);
  CHECK(state.steps() == 0);
  input.indices[5] = 10;
  CHECK_THROWS_AS(ferry::step(exec, rule, table, state, input.indices, grads, any_order{}).wait(),
                  ferry::out_of_range);
  CHECK(take(table) == input.table);
}

}  // namespace ferry_test::step_any_order_test
