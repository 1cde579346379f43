// SPDX-License-Identifier: Apache-2.0
#include "optim/step_kit.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

/// Weights that are infinite and stay so: 0 times infinity must not come in by an option that is off.
namespace ferry_test::infinite_weight_test {

namespace {

template <class Rule>
void stays_infinite(const Rule& rule) {
  CAPTURE(std::string(Rule::name));
  constexpr float infinity = std::numeric_limits<float>::infinity();
  constexpr std::size_t width = 5;
  const std::vector<float> start{infinity, 1.0f, -infinity, 2.0f, 3.0f};
  auto table = make<ferry::device_space>("weights", 1, width, start);
  auto state = ferry::optim::make_state(rule, table);
  const auto grads =
      make<ferry::device_space>("grads", 1, width, std::vector<float>{0.5f, 0.5f, -0.25f, -0.5f, 0.0f});
  for (int step = 0; step < 3; ++step)
    ferry::step(exec_space{}, rule, table, state, std::vector<std::int64_t>{0}, grads).wait();
  const auto now = take(table);
  CHECK(now[0] == infinity);
  CHECK(now[2] == -infinity);
  for (const std::size_t finite : {std::size_t{1}, std::size_t{3}, std::size_t{4}})
    CHECK(std::abs(now[finite] - start[finite]) < 1.0f);
  CHECK(now[1] < start[1]);
  CHECK(now[3] > start[3]);
}

}  // namespace

TEST_CASE("an infinite weight stays infinite where no decay is asked for", "[optim][step]") {
  stays_infinite(ferry::optim::sgd{.lr = 0.1});
  stays_infinite(ferry::optim::sgd{.lr = 0.1, .momentum = 0.9, .nesterov = true});
  stays_infinite(ferry::optim::adagrad{});
  stays_infinite(ferry::optim::adam{});
  stays_infinite(ferry::optim::adamw{.weight_decay = 0.0});
  stays_infinite(ferry::optim::sparse_adam{});
  stays_infinite(ferry::optim::adadelta{});
  stays_infinite(ferry::optim::adamax{});
  stays_infinite(ferry::optim::nadam{});
  stays_infinite(ferry::optim::rmsprop{});
  stays_infinite(ferry::optim::rprop{});
  stays_infinite(ferry::optim::asgd{.lambd = 0.0});
  stays_infinite(ferry::optim::rowwise_adagrad{});
  stays_infinite(ferry::optim::lion{.weight_decay = 0.0});
}

}  // namespace ferry_test::infinite_weight_test
