// SPDX-License-Identifier: Apache-2.0
#include "optim/golden.hpp"

#include <catch2/catch_template_test_macros.hpp>

namespace ferry_test::golden_adam_test {

TEMPLATE_TEST_CASE("trajectories of adam and adamw are PyTorch's", "[optim][golden]", float, double) {
  follow_all<TestType, ferry::optim::adam>();
  follow_all<TestType, ferry::optim::adamw>();
}

}  // namespace ferry_test::golden_adam_test
