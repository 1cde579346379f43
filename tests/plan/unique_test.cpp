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
    auto which = indices<TestType>(random, n, rows);
    for (std::size_t p = 0; p < n; p += 2) which[p] = which[0];  // one row of half of the positions
    std::map<std::int64_t, std::int64_t> times;
    for (const auto index : which) ++times[static_cast<std::int64_t>(index)];
    const auto found = ferry::unique(exec, which, rows);
    REQUIRE(found.rows.rows() == times.size());
    ferry::tensor<std::int64_t, ferry::device_space> named("rows", times.size()), places("inverse", n);
    ferry::copy(exec, found.rows, named).wait();
    ferry::copy(exec, found.inverse, places).wait();
    const auto row = take(named), place = take(places), count = take(found.counts);
    std::size_t at = 0;
    for (const auto& [expected, often] : times) {
      CHECK(row[at] == expected);
      CHECK(count[at++] == often);
    }
    for (std::size_t p = 0; p < n; ++p)
      CHECK(row[static_cast<std::size_t>(place[p])] == static_cast<std::int64_t>(which[p]));
  }
}

TEST_CASE("unique throws for a bad index, or leaves it out") {
  const exec_space exec;
  const std::vector<int> which{3, -1, 3, 9, 40};
  CHECK_THROWS_AS(ferry::unique(exec, which, 10), ferry::out_of_range);
  const auto found = ferry::unique(exec, which, 10, ferry::bounds::skip{});
  CHECK(take(found.counts) == std::vector<std::int64_t>{2, 1});
  ferry::tensor<std::int64_t, ferry::device_space> places("inverse", 5);
  ferry::copy(exec, found.inverse, places).wait();
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
    auto which = indices<std::int32_t>(random, n, rows);
    for (std::size_t p = 0; p < n; p += 3) which[p] = 5;
    const auto contents = values<float>(random, rows * width);
    const auto table = make<TestType>("table", rows, width, contents);
    const std::vector<float> poison(n * width, -7.0F);
    auto out = make<ferry::device_space>("batch", n, width, poison);
    ferry::gather_unique(exec, table, which, out).wait();
    CHECK(same_bits(take(out), gathered(contents, width, which, poison)));

    which[8] = -4;
    which[9] = 1000;
    put(out, poison);
    const auto plan = ferry::make_plan(exec, which, rows, ferry::bounds::skip{});
    ferry::gather_unique(exec, table, plan, out).wait();
    CHECK(same_bits(take(out), gathered(contents, width, which, poison)));
    put(out, poison);
    CHECK_THROWS_AS(ferry::gather_unique(exec, table, which, out).wait(), ferry::out_of_range);
    CHECK(same_bits(take(out), gathered(contents, width, which, poison)));

    ferry::tensor<double, ferry::device_space> wide("batch", n, width);
    which[8] = which[9] = 0;
    ferry::gather_unique(exec, table, which, wide).wait();
    const auto expected = gathered(contents, width, which, poison);
    CHECK(take(wide) == std::vector<double>(expected.begin(), expected.end()));
  }
}

}  // namespace ferry_test::unique_test
