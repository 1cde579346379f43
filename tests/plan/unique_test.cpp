// SPDX-License-Identifier: Apache-2.0
#include "support/arrays.hpp"
#include "support/matrix.hpp"
#include "support/oracle.hpp"
#include "support/paths.hpp"
#include "support/random.hpp"

#include <catch2/catch_template_test_macros.hpp>

#include <map>

namespace ferry_test::unique_test {

TEMPLATE_LIST_TEST_CASE("unique gives the rows, their places and how often they come", "",
                        ferry_test::types_of<decltype(ferry_test::index_types)>) {
  auto random = generator(61);
  const exec_space exec;
  for (const std::size_t n : {1UL, 2UL, 31UL, 1000UL, 5000UL}) {
    CAPTURE(n);
    const std::size_t rows = 1 + random() % 700;
    auto ids = indices<TestType>(random, n, rows);
    for (std::size_t p = 0; p < n; p += 2) ids[p] = ids[0];  // one row of half of the positions
    std::map<std::int64_t, std::int64_t> times;
    for (const auto index : ids) ++times[static_cast<std::int64_t>(index)];
    const auto result = ferry::unique(exec, ids, rows);
    REQUIRE(result.rows.rows() == times.size());
    ferry::tensor<std::int64_t, ferry::device_space> named("rows", times.size()), places("inverse", n);
    ferry::copy(exec, result.rows, named).wait();
    ferry::copy(exec, result.inverse, places).wait();
    const auto row = take(named), place = take(places), count = take(result.counts);
    std::size_t position = 0;
    for (const auto& [expected, often] : times) {
      CHECK(row[position] == expected);
      CHECK(count[position++] == often);
    }
    for (std::size_t p = 0; p < n; ++p)
      CHECK(row[static_cast<std::size_t>(place[p])] == static_cast<std::int64_t>(ids[p]));
  }
}

TEST_CASE("unique throws for a bad index, or leaves it out") {
  const exec_space exec;
  const std::vector<int> ids{3, -1, 3, 9, 40};
  CHECK_THROWS_AS(ferry::unique(exec, ids, 10), ferry::out_of_range);
  const auto result = ferry::unique(exec, ids, 10, ferry::bounds::skip{});
  CHECK(take(result.counts) == std::vector<std::int64_t>{2, 1});
  ferry::tensor<std::int64_t, ferry::device_space> places("inverse", 5);
  ferry::copy(exec, result.inverse, places).wait();
  CHECK(take(places) == std::vector<std::int64_t>{0, -1, 0, 1, -1});
  const auto none = ferry::unique(exec, std::vector<int>{}, 10);
  CHECK(none.rows.rows() == 0);
  CHECK(none.counts.rows() == 0);
}

TEMPLATE_LIST_TEST_CASE("gather_unique gathers what gather does", "",
                        ferry_test::types_of<decltype(ferry_test::spaces)>) {
  auto random = generator(62);
  const exec_space exec;
  if (!direct_runs<TestType, ferry::device_space>()) SKIP("this device has no access to pageable memory");
  for (const std::size_t width : {1UL, 3UL, 16UL, 129UL}) {
    CAPTURE(width);
    const std::size_t rows = 90, n = 700;
    auto ids = indices<std::int32_t>(random, n, rows);
    for (std::size_t p = 0; p < n; p += 3) ids[p] = 5;
    const auto contents = values<float>(random, rows * width);
    const auto table = make<TestType>("table", rows, width, contents);
    const std::vector<float> poison(n * width, -7.0F);
    auto out = make<ferry::device_space>("batch", n, width, poison);
    ferry::gather_unique(exec, table, ids, out).wait();
    CHECK(same_bits(take(out), gathered(contents, width, ids, poison)));

    ids[8] = -4;
    ids[9] = 1000;
    put(out, poison);
    const auto plan = ferry::make_plan(exec, ids, rows, ferry::bounds::skip{});
    ferry::gather_unique(exec, table, plan, out).wait();
    CHECK(same_bits(take(out), gathered(contents, width, ids, poison)));
    put(out, poison);
    CHECK_THROWS_AS(ferry::gather_unique(exec, table, ids, out).wait(), ferry::out_of_range);
    CHECK(same_bits(take(out), gathered(contents, width, ids, poison)));

    ferry::tensor<double, ferry::device_space> wide("batch", n, width);
    ids[8] = ids[9] = 0;
    ferry::gather_unique(exec, table, ids, wide).wait();
    const auto expected = gathered(contents, width, ids, poison);
    CHECK(take(wide) == std::vector<double>(expected.begin(), expected.end()));
  }
}

}  // namespace ferry_test::unique_test
