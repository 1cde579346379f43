// SPDX-License-Identifier: Apache-2.0
#include "optim/golden.hpp"

#include <catch2/catch_template_test_macros.hpp>

namespace ferry_test::golden_adamax_test {

TEMPLATE_TEST_CASE("trajectories of adamax and nadam are PyTorch's", "[optim][golden]", float, double) {
  follow_all<TestType, ferry::optim::adamax>();
  follow_all<TestType, ferry::optim::nadam>();
}

}  // namespace ferry_test::golden_adamax_test
