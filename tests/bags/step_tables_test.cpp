// SPDX-License-Identifier: Apache-2.0
#include "bags/step_kit.hpp"
#include "bags/table_kit.hpp"

#include <ferry/bags.hpp>

namespace ferry_test::step_tables_test {

namespace {

template <class Rule, class T = float, class... Policies>
void check_rule(const Rule& rule, std::uint64_t seed, Policies... policies) {
  auto random = generator(seed);
  for (const auto& widths :
       {std::vector<std::size_t>{8}, std::vector<std::size_t>{4, 128, 16, 64},
        std::vector<std::size_t>{1, 3, 17, 2, 40, 129, 130}, std::vector<std::size_t>(26, 12)}) {
    const table_batch<T> input(random, widths, 9);
    const auto check = [&](auto... more) {
      check_same(stepped_one_by_one(rule, input, more..., policies...),
                 stepped_together(rule, input, more..., policies...));
    };
    check();
    check(ferry::pooling::sum{}, ferry::path::direct{});
    check(input.weights, ferry::pooling::sum{});
    check(input.weights);
  }
}

}  // namespace

TEST_CASE("A step of many tables has the bits of a step for each") {
  check_rule(ferry::optim::sgd{.lr = 0.5}, 201);
  check_rule(ferry::optim::adam{.lr = 0.1}, 202);
}

TEST_CASE("A step of many tables by rules with fields of rows") {
  check_rule(ferry::optim::adagrad{.lr = 0.1}, 203);
  check_rule(ferry::optim::rowwise_adagrad{.lr = 0.1}, 204);
}

}  // namespace ferry_test::step_tables_test
