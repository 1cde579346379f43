// SPDX-License-Identifier: Apache-2.0
#include "optim/bits_kit.hpp"

#include <catch2/catch_test_macros.hpp>

/// The bits of training by rules with at most one moment, in every space and on every path.
namespace ferry_test::bits_sgd_test {

TEST_CASE("sgd, asgd, rprop and lion give the same bits everywhere", "[optim][bits]") {
  using namespace ferry::optim;
  same_bits_everywhere<float>(sgd{.lr = 0.1, .weight_decay = 0.01}, fields<0>);
  same_bits_everywhere<float>(sgd{.lr = 0.1, .momentum = 0.9, .dampening = 0.3, .maximize = true}, fields<1>);
  same_bits_everywhere<float>(sgd{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true},
                              fields<1>);
  same_bits_everywhere<float>(asgd{.lr = 0.1, .lambd = 0.01, .t0 = 2.0, .weight_decay = 0.1}, fields<1>);
  same_bits_everywhere<float>(rprop{.lr = 0.01}, fields<2>);
  same_bits_everywhere<float>(lion{.lr = 0.01, .weight_decay = 0.1}, fields<1>);
}

}  // namespace ferry_test::bits_sgd_test
