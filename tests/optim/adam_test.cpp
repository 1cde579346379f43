// SPDX-License-Identifier: Apache-2.0
#include "optim/trajectory.hpp"

#include <catch2/catch_template_test_macros.hpp>

#include <array>

namespace ferry_test::adam_test {

namespace {

const std::array rules{
    ferry::optim::adam{.lr = 0.01}, ferry::optim::adam{.lr = 0.02, .betas = {0.8, 0.99}, .eps = 1e-4},
    ferry::optim::adam{.lr = 0.005, .weight_decay = 0.01},
    ferry::optim::adam{.lr = 0.01, .betas = {0.9, 0.0}, .eps = 1e-2},
    ferry::optim::adam{.lr = 0.01, .betas = {0.5, 0.9}, .weight_decay = 0.02, .maximize = true}};

using grads = std::tuple<float, ferry::half_t, double>;

template <class Point>
using setting_of = typename point<
    2, std::tuple_element_t<at<0, Point>::value, std::tuple<float, double, ferry::half_t, ferry::bhalf_t>>,
    at<0, Point>::value, std::tuple_element_t<at<1, Point>::value, grads>, at<1, Point>::value>::type;

using elements_by_number = decltype(axis<hana::size_t<0>, hana::size_t<1>, hana::size_t<2>, hana::size_t<3>>);
using grads_by_number = decltype(axis<hana::size_t<0>, hana::size_t<1>, hana::size_t<2>>);
using matrix = product<elements_by_number, grads_by_number>;

}  // namespace

TEMPLATE_LIST_TEST_CASE("adam follows the documented formulas", "[optim][adam]", matrix) {
  run_all<setting_of<TestType>>(rules, 10 * at<0, TestType>::value + at<1, TestType>::value);
}

}  // namespace ferry_test::adam_test
