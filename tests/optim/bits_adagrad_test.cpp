// SPDX-License-Identifier: Apache-2.0
#include "optim/bits_kit.hpp"

#include <catch2/catch_test_macros.hpp>

/// The bits of training by rules that divide by the root of squares, in every space and on every path.
namespace ferry_test::bits_adagrad_test {

TEST_CASE("adagrad, adadelta, rmsprop and ftrl give the same bits everywhere", "[optim][bits]") {
  using namespace ferry::optim;
  same_bits_everywhere<float>(adagrad{.lr = 0.1, .lr_decay = 0.1, .weight_decay = 0.01}, fields<1>);
  same_bits_everywhere<float>(adadelta{.lr = 1.0, .weight_decay = 0.01}, fields<2>);
  same_bits_everywhere<float>(rmsprop{.lr = 0.01}, fields<1>);
  same_bits_everywhere<float>(rmsprop{.lr = 0.01, .weight_decay = 0.01, .momentum = 0.9, .centered = true},
                              fields<3>);
  same_bits_everywhere<float>(ftrl{.lr = 0.1, .l1 = 0.1, .l2 = 0.05}, fields<2>);
}

}  // namespace ferry_test::bits_adagrad_test
