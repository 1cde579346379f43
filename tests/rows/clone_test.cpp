// SPDX-License-Identifier: Apache-2.0
#include "support/matrix.hpp"
#include "support/oracle.hpp"
#include "support/test.hpp"

namespace ferry_test::clone_test {

// The copies between all spaces are those of copy.
using from_to = zipped<decltype(spaces), decltype(spaces), 0, 1>;

TEMPLATE_LIST_TEST_CASE("a clone is a copy of its own, in any space", "[clone]", from_to) {
  using from = at<0, TestType>;
  using to = at<1, TestType>;
  auto random = generator(151);
  const exec_space exec;
  const auto content = values<float>(random, 35 * 7);
  auto table = make<from>("weights", 35, 7, content);
  auto future = ferry::clone<to>(exec, table);
  ferry::tensor<float, to> result = future.get();
  CHECK(result.rank() == 2);
  CHECK(result.rows() == 35);
  CHECK(result.label() == "weights::clone");
  put(table, std::vector<float>(content.size(), 0.0f));
  CHECK(same_bits(take(result), content));
}

TEMPLATE_TEST_CASE("a clone has its original's type, space and extents", "[clone]", ferry::device_space,
                   ferry::pinned_space, ferry::mapped_space, ferry::pageable_space) {
  auto random = generator(152);
  const exec_space exec;
  const auto content = values<std::int64_t>(random, 6 * 3 * 4);
  ferry::tensor<std::int64_t, TestType, ferry::extents<ferry::dyn, 3, 4>> cube("cube", 6);
  put(cube, content);
  auto member = cube.clone(exec);
  const ferry::tensor<std::int64_t, TestType, ferry::extents<ferry::dyn, 3, 4>> first = member.get();
  CHECK(take(first) == content);
  auto named = ferry::clone(exec, std::as_const(cube), "saved");
  const ferry::tensor<std::int64_t, TestType, ferry::extents<ferry::dyn, 3, 4>> second = named.get();
  CHECK(take(second) == content);
  CHECK(second.label() == "saved");
  const ferry::tensor<std::int64_t, TestType, ferry::extents<ferry::dyn, 3, 4>> part =
      ferry::clone(exec, std::as_const(cube).rows_between(2, 4)).get();
  CHECK(take(part) == std::vector<std::int64_t>(content.begin() + 24, content.begin() + 48));
  const ferry::tensor<std::int64_t, TestType, ferry::extents<ferry::dyn, 3, 4>> of_view =
      ferry::clone(exec, cube.view(), "of view").get();
  CHECK(take(of_view) == content);

  ferry::tensor<float, TestType, ferry::extents<2, 3>> fixed("fixed");
  const auto small = values<float>(random, 6);
  put(fixed, small);
  const ferry::tensor<float, TestType, ferry::extents<2, 3>> third = ferry::clone(exec, fixed).get();
  CHECK(same_bits(take(third), small));
  const ferry::tensor<float, TestType> none("none", 0, 5);
  const auto nothing = none.clone(exec).get();
  CHECK(nothing.rows() == 0);
  CHECK(nothing.width() == 5);
}

TEST_CASE("clones of other arrays", "[clone]") {
  const exec_space exec;
  const std::vector<std::int32_t> numbers{3, 1, 4, 1, 5};
  const ferry::tensor<std::int32_t, ferry::device_space> list =
      ferry::clone<ferry::device_space>(exec, numbers).get();
  CHECK(list.rank() == 1);
  CHECK(take(list) == numbers);

  Kokkos::View<int**, Kokkos::LayoutLeft, Kokkos::HostSpace> columns("columns", 3, 2);
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 2; ++j) columns(i, j) = 10 * i + j;
  const auto row_major = ferry::clone<ferry::mapped_space>(exec, columns).get();
  CHECK(take(row_major) == std::vector<int>{0, 1, 10, 11, 20, 21});
  const ferry::tensor<float, ferry::pinned_space> handle;
  CHECK_THROWS_MATCHES(ferry::clone(exec, handle), ferry::invalid_argument,
                       MessageMatches(ContainsSubstring("empty handle")));
}

}  // namespace ferry_test::clone_test
