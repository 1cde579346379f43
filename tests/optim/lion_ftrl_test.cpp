// SPDX-License-Identifier: Apache-2.0
#include "support/arrays.hpp"
#include "support/random.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

/// The rules that torch.optim does not have, against loops written from their papers.
namespace ferry_test::lion_ftrl_test {

namespace {

struct element {
  double weight, first, second;
};

/// Lion, algorithm 2, line by line.
void follow_paper(const ferry::optim::lion& rule, element& cell, double gradient) {
  const double g = rule.maximize ? -gradient : gradient;
  const double c = rule.betas[0] * cell.first + (1.0 - rule.betas[0]) * g;
  const double sign = c > 0.0 ? 1.0 : c < 0.0 ? -1.0 : 0.0;
  cell.weight = cell.weight - rule.lr * (sign + rule.weight_decay * cell.weight);
  cell.first = rule.betas[1] * cell.first + (1.0 - rule.betas[1]) * g;
}

/// FTRL-Proximal, algorithm 1, but that the weight is kept instead of made anew before each gradient.
void follow_paper(const ferry::optim::ftrl& rule, element& cell, double gradient) {
  const double g = rule.maximize ? -gradient : gradient;
  const double sigma = (std::sqrt(cell.first + g * g) - std::sqrt(cell.first)) / rule.lr;
  cell.second = cell.second + g - sigma * cell.weight;
  cell.first = cell.first + g * g;
  if (std::fabs(cell.second) <= rule.l1)
    cell.weight = 0.0;
  else
    cell.weight = -(cell.second - (cell.second > 0.0 ? rule.l1 : -rule.l1)) /
                  ((rule.beta + std::sqrt(cell.first)) / rule.lr + rule.l2);
}

template <class Rule>
void check(const Rule& rule, double initial, std::uint64_t salt) {
  auto random = generator(salt);
  const exec_space exec;
  const std::size_t rows = 9, width = 5, n = 4;
  const auto start = values<double>(random, rows * width);
  auto table = make<ferry::mapped_space>("weights", rows, width, start);
  auto state = ferry::optim::make_state(rule, table);
  std::vector<element> expected;
  for (const double weight : start) expected.push_back({weight, initial, 0.0});
  for (int step = 0; step < 50; ++step) {
    const auto ids = unique_indices<std::int64_t>(random, n, rows);
    const auto gradients = values<double>(random, n * width);
    ferry::step(exec, rule, table, state, ids, make<ferry::device_space>("grads", n, width, gradients))
        .wait();
    for (std::size_t p = 0; p < n; ++p)
      for (std::size_t c = 0; c < width; ++c)
        follow_paper(rule, expected[static_cast<std::size_t>(ids[p]) * width + c], gradients[p * width + c]);
  }
  const auto now = take(table);
  double worst = 0.0;
  for (std::size_t i = 0; i < now.size(); ++i)
    worst = std::fmax(worst,
                      std::fabs(now[i] - expected[i].weight) / std::fmax(1.0, std::fabs(expected[i].weight)));
  CHECK(worst < 1e-12);
}

}  // namespace

TEST_CASE("lion follows its paper", "[optim][lion]") {
  check(ferry::optim::lion{}, 0.0, 201);
  check(ferry::optim::lion{.lr = 0.02, .betas = {0.5, 0.8}, .weight_decay = 0.3, .maximize = true}, 0.0, 202);
}

TEST_CASE("ftrl follows its paper", "[optim][ftrl]") {
  check(ferry::optim::ftrl{}, 0.0, 203);
  check(ferry::optim::ftrl{.lr = 0.5, .beta = 0.1, .l1 = 3.0, .l2 = 0.2, .initial_accumulator_value = 0.1},
        0.1, 204);
  check(ferry::optim::ftrl{.beta = 0.0, .l1 = 40.0, .maximize = true}, 0.0, 205);
}

TEST_CASE("options that no rule takes are refused by name", "[optim][errors]") {
  const auto refused = [](const auto& rule) { CHECK_THROWS_AS(rule.check(), ferry::invalid_argument); };
  refused(ferry::optim::adamw{.betas = {0.9, 1.0}});
  refused(ferry::optim::sparse_adam{.eps = -1.0});
  refused(ferry::optim::adadelta{.rho = 1.5});
  refused(ferry::optim::adamax{.lr = -1.0});
  refused(ferry::optim::nadam{.momentum_decay = -1.0});
  refused(ferry::optim::rmsprop{.alpha = -0.5});
  refused(ferry::optim::rprop{.etas = {0.5, 0.9}});
  refused(ferry::optim::rprop{.step_sizes = {1.0, 0.5}});
  refused(ferry::optim::asgd{.t0 = -1.0});
  refused(ferry::optim::lion{.weight_decay = std::nan("")});
  refused(ferry::optim::ftrl{.lr = 0.0});
}

}  // namespace ferry_test::lion_ftrl_test
