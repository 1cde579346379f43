// SPDX-License-Identifier: Apache-2.0
#include <ferry/ferry.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <utility>

namespace ferry_test::state_test {

TEST_CASE("a state moves with its fields, also to itself", "[optim]") {
  const ferry::tensor<float, ferry::pinned_space> table("table", 5, 3);
  auto state = ferry::optim::make_state(ferry::optim::adam{}, table);
  state.field(0)(4, 2) = 7.0f;
  state.set_steps(3);
  auto& alias = state;
  state = std::move(alias);
  REQUIRE(state.fields() == 2);
  CHECK(state.field("exp_avg")(4, 2) == 7.0f);

  auto second = std::move(state);
  CHECK(second.field(0)(4, 2) == 7.0f);
  CHECK(second.steps() == 3);
  CHECK(state.fields() == 0);
  CHECK_THROWS_AS(state.steps(), ferry::invalid_argument);
  state = ferry::optim::make_state(ferry::optim::adam{}, table);
  CHECK(state.fields() == 2);
  CHECK(state.steps() == 0);
}

TEST_CASE("a state that was moved from refuses its row fields by name", "[optim]") {
  const ferry::tensor<float, ferry::pinned_space> table("table", 5, 3);
  auto state = ferry::optim::make_state(ferry::optim::rowwise_adagrad{}, table);
  REQUIRE(decltype(state)::row_fields == 1);
  const auto second = std::move(state);
  CHECK(second.row_field_at(0).rows() == 5);
  CHECK_THROWS_WITH(state.row_field_at(0), Catch::Matchers::ContainsSubstring("moved elsewhere"));
}

}  // namespace ferry_test::state_test
