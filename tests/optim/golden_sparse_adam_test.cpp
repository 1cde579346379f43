// SPDX-License-Identifier: Apache-2.0
#include "optim/golden.hpp"

#include <catch2/catch_template_test_macros.hpp>

namespace ferry_test::golden_sparse_adam_test {

TEMPLATE_TEST_CASE("trajectories of sparse_adam and rprop are PyTorch's", "[optim][golden]", float, double) {
  follow_all<TestType, ferry::optim::sparse_adam>();
  follow_all<TestType, ferry::optim::rprop>();
}

}  // namespace ferry_test::golden_sparse_adam_test
