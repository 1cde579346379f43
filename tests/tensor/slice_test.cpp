// SPDX-License-Identifier: Apache-2.0
#include "support/arrays.hpp"
#include "support/random.hpp"

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

/// Elements by their indices, and tensors' neighbouring rows.
namespace ferry_test::slice_test {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

/// 0, 1, 2, ...
std::vector<std::int32_t> counted(std::size_t size) {
  std::vector<std::int32_t> result(size);
  std::iota(result.begin(), result.end(), 0);
  return result;
}

}  // namespace

TEMPLATE_TEST_CASE("host code reads and writes elements by their indices", "[tensor]", ferry::pinned_space,
                   ferry::mapped_space, ferry::pageable_space) {
  auto cube = make<TestType>("line", counted(60));
  ferry::tensor<std::int32_t, TestType> dynamic("dynamic", 3, 4, 5);
  ferry::tensor<std::int32_t, TestType, ferry::extents<ferry::dyn, 4, 5>> fixed("fixed", 3);
  std::int32_t next = 0;
  for (std::size_t i = 0; i < 3; ++i)
    for (int j = 0; j < 4; ++j)
      for (std::int64_t k = 0; k < 5; ++k) {
        dynamic(i, j, k) = next;
        fixed(i, j, k) = next;
        ++next;
      }
  CHECK(take(dynamic) == take(cube));
  CHECK(take(fixed) == take(cube));
  CHECK(std::as_const(dynamic)(2, 1, 4) == 49);
  CHECK(std::as_const(fixed)(1, 3, 0) == 35);
  CHECK(cube(41) == 41);
  CHECK(dynamic.rows_between(1, 3)(1, 1, 4) == 49);
  CHECK(&std::as_const(fixed).rows_between(1, 3)(0, 3, 0) == &fixed(1, 3, 0));
  STATIC_CHECK(std::is_same_v<decltype(dynamic(0, 0, 0)), std::int32_t&>);
  STATIC_CHECK(std::is_same_v<decltype(std::as_const(dynamic)(0, 0, 0)), const std::int32_t&>);
  STATIC_CHECK(std::is_same_v<decltype(dynamic.first(1)(0, 0, 0)), std::int32_t&>);
  STATIC_CHECK(std::is_same_v<decltype(std::as_const(dynamic).first(1)(0, 0, 0)), const std::int32_t&>);
}

TEST_CASE("what an assertion looks at", "[tensor]") {
  const ferry::tensor<float, ferry::pageable_space> table("table", 3, 4);
  const auto whole = table.view().extents_of();
  CHECK(whole.holds(0, 0));
  CHECK(whole.holds(2, 3));
  CHECK_FALSE(whole.holds(3, 0));
  CHECK_FALSE(whole.holds(0, 4));
  CHECK_FALSE(whole.holds(-1, 0));
  CHECK_FALSE(whole.holds(0));
  CHECK_FALSE(whole.holds(0, 0, 0));
  CHECK_FALSE(table.first(2).extents_of().holds(2, 0));
}

TEMPLATE_TEST_CASE("a slice is some of the rows, under the tensor's name", "[slice]", ferry::device_space,
                   ferry::pinned_space, ferry::mapped_space, ferry::pageable_space) {
  ferry::tensor<float, TestType> table("weights", 10, 3, 4);
  const auto head = table.first(4);
  CHECK(head.data() == table.data());
  CHECK(head.rows() == 4);
  CHECK(head.width() == 12);
  CHECK(head.rank() == 3);
  CHECK(head.extent(2) == 4);
  CHECK(head.size() == 48);
  CHECK(head.label() == "weights");
  CHECK(head.accesses() == table.accesses());
  const auto middle = table.rows_between(3, 9);
  CHECK(middle.data() == table.data() + 36);
  CHECK(middle.rows() == 6);
  const auto inner = middle.rows_between(2u, std::size_t{5}).first(std::int8_t{2});
  CHECK(inner.data() == table.data() + 60);
  CHECK(inner.rows() == 2);
  CHECK(inner.accesses() == table.accesses());
  CHECK(inner.view().data() == inner.data());
  CHECK(inner.view().rows() == 2);
  CHECK(table.rows_between(10, 10).rows() == 0);
  CHECK(table.first(0).width() == 12);
  CHECK(table.first(10).size() == table.size());
  CHECK(ferry::to_kokkos(middle).extent(0) == 6);
  CHECK(ferry::to_kokkos<3>(middle).data() == middle.data());

  using constant = ferry::tensor_slice<const float, TestType>;
  const constant converted = middle;
  const constant of_const = std::as_const(table).rows_between(3, 9);
  CHECK(converted.data() == of_const.data());
  CHECK(of_const.accesses() == table.accesses());
  const auto ref = ferry::make_ref(of_const);
  STATIC_CHECK(
      std::is_same_v<std::remove_cv_t<decltype(ref)>, ferry::detail::array_ref<const float, TestType>>);
  CHECK(ref.rows() == 6);
  CHECK(ref.is_contiguous());
  CHECK(ref.describe() == "'weights' [6 x 3 x 4] in " + std::string(TestType::name));
}

TEST_CASE("a slice keeps the width that a type fixes", "[slice]") {
  ferry::tensor<float, ferry::mapped_space, ferry::extents<10, 6>> table("table");
  auto part = table.first(3);
  STATIC_CHECK(
      std::is_same_v<decltype(part),
                     ferry::tensor_slice<float, ferry::mapped_space, ferry::extents<ferry::dyn, 6>>>);
  STATIC_CHECK(ferry::array_traits<decltype(part)>::static_width == 6);
  STATIC_CHECK(std::is_same_v<decltype(part.first(1)), decltype(part)>);
  CHECK(part.rows() == 3);
  CHECK(part.width() == 6);
  CHECK(part.extents_of().extent(1) == 6);
  const ferry::tensor<float, ferry::mapped_space> dynamic("dynamic", 10, 6);
  STATIC_CHECK(ferry::array_traits<decltype(dynamic.first(1))>::static_width == ferry::dyn);
}

TEST_CASE("a slice stays valid where its tensor is moved", "[slice]") {
  auto table = make<ferry::pageable_space>("table", 4, 2, counted(8));
  const auto part = table.rows_between(1, 3);
  const auto accesses = table.accesses();
  const auto moved = std::move(table);
  CHECK(part(0, 0) == 2);
  CHECK(part(1, 1) == 5);
  CHECK(part.data() == moved.data() + 2);
  CHECK(part.accesses() == moved.accesses());
}

TEST_CASE("rows that a tensor does not have are refused by name", "[slice]") {
  ferry::tensor<float, ferry::pinned_space> table("weights", 10, 4);
  CHECK_THROWS_MATCHES(
      table.first(11), ferry::out_of_range,
      MessageMatches(ContainsSubstring("is 11") && ContainsSubstring("'weights' [10 x 4] in pinned_space")));
  CHECK_THROWS_MATCHES(table.first(-1), ferry::out_of_range, MessageMatches(ContainsSubstring("is -1")));
  CHECK_THROWS_MATCHES(table.rows_between(3, 12), ferry::out_of_range,
                       MessageMatches(ContainsSubstring("rows 3 to 12") &&
                                      ContainsSubstring("'weights' [10 x 4] in pinned_space")));
  CHECK_THROWS_AS(table.rows_between(-3, 2), ferry::out_of_range);
  CHECK_THROWS_AS(table.rows_between(11, 11), ferry::out_of_range);
  CHECK_THROWS_AS(table.rows_between(0, ~std::uint64_t{0}), ferry::out_of_range);
  CHECK_THROWS_MATCHES(
      table.rows_between(7, 3), ferry::invalid_argument,
      MessageMatches(ContainsSubstring("7") && ContainsSubstring("3") && ContainsSubstring("'weights'")));
  CHECK_THROWS_MATCHES(table.first(5).first(6), ferry::out_of_range,
                       MessageMatches(ContainsSubstring("'weights' [5 x 4]")));
  ferry::tensor<float, ferry::pinned_space> handle;
  CHECK(handle.first(0).rank() == 0);
  CHECK_THROWS_AS(handle.first(1), ferry::out_of_range);
}

}  // namespace ferry_test::slice_test
