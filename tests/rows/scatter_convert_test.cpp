// SPDX-License-Identifier: Apache-2.0
#include "support/arrays.hpp"
#include "support/matrix.hpp"
#include "support/oracle.hpp"
#include "support/paths.hpp"
#include "support/random.hpp"

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>

namespace ferry_test::scatter_convert_test {

template <class TableSpace, class ValuesSpace, class Path>
struct way {
  using table_space = TableSpace;
  using values_space = ValuesSpace;
  using path = Path;
};
inline constexpr auto ways = axis<way<ferry::mapped_space, ferry::device_space, ferry::path::direct>,
                                  way<ferry::pageable_space, ferry::device_space, ferry::path::staged>,
                                  way<ferry::device_space, ferry::pageable_space, ferry::path::staged>>;

// Every two types on one of the ways; a type goes all of them, with the others in turn.
using conversion_points =
    rotated<decltype(elements), decltype(axis<float, ferry::half_t, double>), decltype(ways)>;
TEMPLATE_LIST_TEST_CASE("scatter converts between number types", "[scatter]", conversion_points) {
  using T = at<0, TestType>;
  using V = at<1, TestType>;
  using table_space = typename at<2, TestType>::table_space;
  using values_space = typename at<2, TestType>::values_space;
  const typename at<2, TestType>::path path;
  auto random = generator(22);
  const std::size_t rows = 31, n = 40, width = 12;
  const auto content = values<T>(random, rows * width);
  auto batch = values<V>(random, n * width);
  // Whole numbers: integer tables truncate each value, not the sum.
  for (auto& value : batch) value = V(std::trunc(number(value)));
  const auto ids = indices<std::uint64_t>(random, n, rows);
  const exec_space exec;
  CAPTURE(table_space::name, values_space::name, path.name);
  const auto sources = make<values_space>("values", n, width, batch);
  auto replaced = make<table_space>("weights", rows, width, content);
  ferry::scatter(exec, replaced, ids, sources, path).wait();
  CHECK(close(take(replaced), scattered(content, width, ids, batch, false, "duplicates::last")));
  auto added = make<table_space>("weights", rows, width, content);
  ferry::scatter_add(exec, added, ids, sources, path).wait();
  CHECK(close(take(added), scattered(content, width, ids, batch, true, "duplicates::sum")));
}

TEST_CASE("sums and means of mixed number types keep their sign and their bits", "[scatter]") {
  const exec_space exec;
  const std::vector<int> ids{1, 1, 0};
  // The sum passes the 24 bits of a float.
  const auto singles =
      make<ferry::device_space>("values", 3, 1, std::vector<float>{16777216.0f, 1.0f, -3.0f});
  auto whole = make<ferry::mapped_space>("weights", 2, 1, std::vector<std::int64_t>{5, 0});
  ferry::scatter_add(exec, whole, ids, singles).wait();
  CHECK(take(whole) == std::vector<std::int64_t>{2, 16777217});
  const auto negative = make<ferry::device_space>("values", 3, 1, std::vector<std::int32_t>{-8, -4, 2});
  auto unsigned_table = make<ferry::mapped_space>("weights", 2, 1, std::vector<std::uint64_t>{10, 10});
  ferry::scatter_add(exec, unsigned_table, ids, negative, ferry::duplicates::mean{}).wait();
  CHECK(take(unsigned_table) == std::vector<std::uint64_t>{12, 4});
}

}  // namespace ferry_test::scatter_convert_test
