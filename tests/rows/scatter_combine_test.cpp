// SPDX-License-Identifier: Apache-2.0
#include "rows/check_combination.hpp"

#include <catch2/catch_template_test_macros.hpp>

namespace ferry_test::scatter_combine_test {

// Every type and policy with both verbs, one of which goes direct and the other one staged.
using combination_points = rotated<decltype(axis<float, double, std::int32_t>), decltype(combinations),
                                   decltype(in_turn<goes_direct::scatter, goes_direct::scatter_add>)>;
TEMPLATE_LIST_TEST_CASE("every duplicates policy on wide element types", "[scatter][duplicates]",
                        combination_points) {
  check_combination<at<0, TestType>, at<1, TestType>, at<2, TestType>::value>();
}

}  // namespace ferry_test::scatter_combine_test
