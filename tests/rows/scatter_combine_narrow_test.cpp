// SPDX-License-Identifier: Apache-2.0
#include "rows/check_combination.hpp"

#include <catch2/catch_template_test_macros.hpp>

namespace ferry_test::scatter_combine_narrow_test {

// As on wide types, where the other verb goes direct with the same policy.
using combination_points =
    rotated<decltype(axis<ferry::half_t, ferry::bhalf_t, std::int64_t>), decltype(combinations),
            decltype(in_turn<goes_direct::scatter_add, goes_direct::scatter>)>;
TEMPLATE_LIST_TEST_CASE("every duplicates policy on the other element types", "[scatter][duplicates]",
                        combination_points) {
  check_combination<at<0, TestType>, at<1, TestType>, at<2, TestType>::value>();
}

}  // namespace ferry_test::scatter_combine_narrow_test
