// SPDX-License-Identifier: Apache-2.0
#include "optim/catch_up_kit.hpp"

#include <catch2/catch_test_macros.hpp>

#include <type_traits>

/// step_count::catch_up for every rule that updates element by element.
namespace ferry_test::step_count_rules_test {

TEST_CASE("catching up is dense training, for every rule", "[optim][step_count]") {
  using space = ferry::mapped_space;
  const ferry::path::direct path;
  const auto check = [&]<class Rule, int Fields>(const Rule& rule, std::integral_constant<int, Fields>) {
    catching_up_is_dense_training<double, space, Rule, Fields>(rule, path, 1e-12);
    // In float one rule of each number of fields.
    if constexpr (std::is_same_v<Rule, ferry::optim::sgd> || std::is_same_v<Rule, ferry::optim::adam>)
      catching_up_is_dense_training<float, space, Rule, Fields>(rule, path, 2e-5);
  };
  using namespace ferry::optim;
  const std::integral_constant<int, 0> none;
  const std::integral_constant<int, 1> single;
  const std::integral_constant<int, 2> two;
  const std::integral_constant<int, 3> three;
  check(sgd{.lr = 0.1, .weight_decay = 0.01}, none);
  check(sgd{.lr = 0.1, .momentum = 0.9}, single);
  check(sgd{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true}, single);
  check(adagrad{.lr = 0.1, .lr_decay = 0.1}, single);
  check(adagrad{.lr = 0.1, .weight_decay = 0.1}, single);
  check(adam{.lr = 0.1, .amsgrad = true}, three);
  check(adam{.lr = 0.1, .weight_decay = 0.1}, two);
  check(adamw{.lr = 0.1, .weight_decay = 0.1}, two);
  check(adamw{.lr = 0.1, .weight_decay = 0.0}, two);
  check(sparse_adam{.lr = 0.1}, two);
  check(nadam{.lr = 0.1}, two);
  check(adadelta{.lr = 1.0}, two);
  check(adamax{.lr = 0.1}, two);
  check(rmsprop{.lr = 0.01}, single);
  check(rmsprop{.lr = 0.01, .momentum = 0.9, .centered = true}, three);
  check(rmsprop{.lr = 0.01, .centered = true}, two);
  check(rprop{.lr = 0.01}, two);
  check(asgd{.lr = 0.1, .lambd = 0.01, .t0 = 5.0}, single);
  check(ftrl{.lr = 0.1, .l1 = 0.1}, two);
}

}  // namespace ferry_test::step_count_rules_test
