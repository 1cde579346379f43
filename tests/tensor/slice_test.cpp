// SPDX-License-Identifier: Apache-2.0
#include "support/test.hpp"

namespace ferry_test::slice_test {

// Elements by their indices, and tensors' neighbouring rows.

/// 0, 1, 2, ...
std::vector<std::int32_t> counted(std::size_t size) {
  std::vector<std::int32_t> result(size);
  std::iota(result.begin(), result.end(), 0);
  return result;
}

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

using ferry::dyn;
using ferry::extents;

TEST_CASE("extents say what they fix", "[shape]") {
  using some = extents<dyn, 3, dyn>;
  STATIC_CHECK(some::rank == 3);
  STATIC_CHECK(some::value(0) == dyn);
  STATIC_CHECK(some::value(1) == 3);
  STATIC_CHECK(some::value(2) == dyn);
  STATIC_CHECK(some::value(3) == dyn);
  STATIC_CHECK(ferry::detail::static_width<some> == dyn);
  STATIC_CHECK(ferry::detail::static_width<extents<dyn, 3, 5>> == 15);
  STATIC_CHECK(ferry::detail::static_width<extents<dyn>> == 1);
  STATIC_CHECK(ferry::detail::static_width<ferry::dynamic_rank> == dyn);
}

TEST_CASE("a tensor of dynamic rank takes rank and extents from its constructor", "[shape]") {
  const ferry::tensor<float, ferry::pageable_space> four("four", 2, 3, 4, 5);
  CHECK(four.rank() == 4);
  CHECK(four.rows() == 2);
  CHECK(four.width() == 60);
  CHECK(four.size() == 120);
  CHECK(four.extent(0) == 2);
  CHECK(four.extent(2) == 4);
  CHECK(four.extent(7) == 1);
  CHECK(four.label() == "four");

  const ferry::tensor<float, ferry::pageable_space> single("one", std::int64_t{7});
  CHECK(single.rank() == 1);
  CHECK(single.rows() == 7);
  CHECK(single.width() == 1);
  CHECK(single.size() == 7);

  const ferry::tensor<float, ferry::pageable_space> mixed("mixed", 7u, short{2}, std::size_t{3});
  CHECK(mixed.width() == 6);

  const ferry::tensor<std::int8_t, ferry::pageable_space> eight(
      "eight", std::array<std::size_t, 8>{1, 2, 1, 2, 1, 2, 1, 2});
  CHECK(eight.rank() == 8);
  CHECK(eight.size() == 16);
}

TEST_CASE("static extents need not be given, and may be", "[shape]") {
  using table = ferry::tensor<float, ferry::pageable_space, extents<dyn, 12>>;
  const table brief("brief", 5);
  CHECK(brief.rank() == 2);
  CHECK(brief.rows() == 5);
  CHECK(brief.width() == 12);
  const table full("full", 5, 12);
  CHECK(full.size() == 60);
  const ferry::tensor<float, ferry::pageable_space, extents<dyn, 2, dyn, 3>> deep("deep", 5, 7);
  CHECK(deep.extent(1) == 2);
  CHECK(deep.extent(2) == 7);
  CHECK(deep.size() == 5 * 2 * 7 * 3);
}

TEST_CASE("extents that contradict the type are refused with the tensor's label", "[shape]") {
  using table = ferry::tensor<float, ferry::pageable_space, extents<dyn, 12>>;
  CHECK_THROWS_MATCHES(table("wrong width", 5, 13), ferry::invalid_argument,
                       MessageMatches(ContainsSubstring("'wrong width'") && ContainsSubstring("13") &&
                                      ContainsSubstring("12")));
  CHECK_THROWS_MATCHES(table("too many", 5, 12, 1), ferry::invalid_argument,
                       MessageMatches(ContainsSubstring("'too many'") && ContainsSubstring("3 extents") &&
                                      ContainsSubstring("rank 2")));
  using dynamic = ferry::tensor<float, ferry::pageable_space>;
  CHECK_THROWS_MATCHES(dynamic("nine", 1, 1, 1, 1, 1, 1, 1, 1, 1), ferry::invalid_argument,
                       MessageMatches(ContainsSubstring("'nine'") && ContainsSubstring("rank 9")));
}

TEST_CASE("negative and overflowing extents are refused with the tensor's label", "[shape]") {
  using table = ferry::tensor<float, ferry::pageable_space>;
  CHECK_THROWS_MATCHES(table("below", -1, 12), ferry::invalid_argument,
                       MessageMatches(ContainsSubstring("'below'") && ContainsSubstring("-1") &&
                                      ContainsSubstring("negative")));
  CHECK_THROWS_MATCHES(table("behind", 12, std::int64_t{-7}), ferry::invalid_argument,
                       MessageMatches(ContainsSubstring("'behind'") && ContainsSubstring("-7")));
  constexpr std::size_t huge = std::size_t{1} << 32;
  CHECK_THROWS_MATCHES(
      table("square", huge, huge), ferry::invalid_argument,
      MessageMatches(ContainsSubstring("'square'") && ContainsSubstring("[4294967296 x 4294967296]")));
  CHECK_THROWS_AS(table("wraps to 4", (std::size_t{1} << 62) + 1, 4), ferry::invalid_argument);
  CHECK_THROWS_AS(table("in bytes only", std::size_t{1} << 61), ferry::invalid_argument);
  CHECK_THROWS_AS(table("largest", std::numeric_limits<std::size_t>::max()), ferry::invalid_argument);
  // The errors are those of ferry's own tree, and of the standard's.
  CHECK_THROWS_AS(table("below", -1), ferry::error);
  CHECK_THROWS_AS(table("below", -1), std::runtime_error);
}

TEST_CASE("extents may be zero", "[shape]") {
  const ferry::tensor<float, ferry::device_space> no_rows("no rows", 0, 12);
  CHECK(no_rows.rank() == 2);
  CHECK(no_rows.rows() == 0);
  CHECK(no_rows.width() == 12);
  CHECK(no_rows.size() == 0);
  const ferry::tensor<float, ferry::device_space> no_width("no width", 12, 0);
  CHECK(no_width.rows() == 12);
  CHECK(no_width.width() == 0);
  CHECK(no_width.size() == 0);
  const ferry::tensor<float, ferry::mapped_space> nothing("nothing", 0);
  CHECK(nothing.size() == 0);
}

TEST_CASE("a shape says its extents and row-major positions", "[shape]") {
  const std::array<std::size_t, 3> sizes{4, 5, 6};
  const auto dynamic = ferry::shape<ferry::dynamic_rank>::make(sizes, "any", 1);
  CHECK(dynamic.to_string() == "[4 x 5 x 6]");
  const std::array<std::size_t, 1> first{4};
  const auto fixed = ferry::shape<extents<dyn, 5, 6>>::make(first, "any", 1);
  CHECK(fixed.to_string() == "[4 x 5 x 6]");
  std::size_t expected = 0;
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 5; ++j)
      for (int k = 0; k < 6; ++k, ++expected) {
        REQUIRE(dynamic.offset(i, j, k) == expected);
        REQUIRE(fixed.offset(i, j, k) == expected);
      }
  CHECK(ferry::shape<ferry::dynamic_rank>{}.size() == 0);
  CHECK(ferry::shape<ferry::dynamic_rank>{}.rank() == 0);
  CHECK(ferry::shape<ferry::dynamic_rank>{}.width() == 0);
}

}  // namespace ferry_test::slice_test
