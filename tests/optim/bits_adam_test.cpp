// SPDX-License-Identifier: Apache-2.0
#include "optim/bits_kit.hpp"

#include <catch2/catch_test_macros.hpp>

/// The bits of training by adam and its kin, in every space and on every path.
namespace ferry_test::bits_adam_test {

TEST_CASE("adam, in float and half_t, and adamw give the same bits everywhere", "[optim][bits]") {
  using namespace ferry::optim;
  same_bits_everywhere<float>(adam{.lr = 0.1}, fields<2>);
  same_bits_everywhere<float>(adam{.lr = 0.1, .weight_decay = 0.01, .amsgrad = true, .maximize = true},
                              fields<3>);
  same_bits_everywhere<ferry::half_t>(adam{.lr = 0.1}, fields<2>);
  same_bits_everywhere<float>(adamw{.lr = 0.1, .weight_decay = 0.1, .amsgrad = true}, fields<3>);
}

TEST_CASE("adam gives the same bits on every host backend", "[optim][bits]") {
  same_bits_on_host_backends<float>(ferry::optim::adam{.lr = 0.1, .weight_decay = 0.01}, fields<2>);
}

}  // namespace ferry_test::bits_adam_test
