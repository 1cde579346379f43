// SPDX-License-Identifier: Apache-2.0
#include "support/arrays.hpp"

#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace ferry_test::shape_test {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

using ferry::dyn;
using ferry::extents;

TEST_CASE("extents say what they fix", "[shape]") {
  using some = extents<dyn, 3, dyn>;
  STATIC_CHECK(some::rank == 3);
  STATIC_CHECK(some::value(0) == dyn);
  STATIC_CHECK(some::value(1) == 3);
  STATIC_CHECK(some::value(2) == dyn);
  STATIC_CHECK(some::value(3) == dyn);
  STATIC_CHECK(ferry::detail::static_width<some>() == dyn);
  STATIC_CHECK(ferry::detail::static_width<extents<dyn, 3, 5>>() == 15);
  STATIC_CHECK(ferry::detail::static_width<extents<dyn>>() == 1);
  STATIC_CHECK(ferry::detail::static_width<ferry::dynamic_rank>() == dyn);
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

}  // namespace ferry_test::shape_test
