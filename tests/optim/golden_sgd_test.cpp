// SPDX-License-Identifier: Apache-2.0
#include "optim/golden.hpp"

#include <catch2/catch_template_test_macros.hpp>

namespace ferry_test::golden_sgd_test {

TEMPLATE_TEST_CASE("trajectories of sgd and asgd are PyTorch's", "[optim][golden]", float, double) {
  follow_all<TestType, ferry::optim::sgd>();
  follow_all<TestType, ferry::optim::asgd>();
}

}  // namespace ferry_test::golden_sgd_test
