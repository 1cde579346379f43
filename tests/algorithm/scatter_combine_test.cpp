#include "algorithm/check_combination.hpp"

#include <catch2/catch_template_test_macros.hpp>

namespace ferry_test {

using combination_points = product<decltype(axis<float, double, std::int32_t>), decltype(combinations)>;
TEMPLATE_LIST_TEST_CASE("every duplicates policy on wide element types", "[scatter][duplicates]",
                        combination_points) {
  check_combination<at<0, TestType>, at<1, TestType>>();
}

}  // namespace ferry_test
