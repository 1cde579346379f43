// SPDX-License-Identifier: Apache-2.0
#include "optim/bits_kit.hpp"

#include <catch2/catch_test_macros.hpp>

/// The bits of training by further rules of two moments, in every space and on every path.
namespace ferry_test::bits_adamax_test {

TEST_CASE("adamax, nadam and sparse_adam give the same bits everywhere", "[optim][bits]") {
  using namespace ferry::optim;
  same_bits_everywhere<float>(adamax{.lr = 0.1, .weight_decay = 0.01}, fields<2>);
  same_bits_everywhere<float>(nadam{.lr = 0.1, .weight_decay = 0.01}, fields<2>);
  same_bits_everywhere<float>(nadam{.lr = 0.1, .weight_decay = 0.01, .decoupled_weight_decay = true},
                              fields<2>);
  same_bits_everywhere<float>(sparse_adam{.lr = 0.1}, fields<2>);
}

}  // namespace ferry_test::bits_adamax_test
