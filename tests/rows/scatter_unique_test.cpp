// SPDX-License-Identifier: Apache-2.0
#include "support/arrays.hpp"
#include "support/matrix.hpp"
#include "support/oracle.hpp"
#include "support/paths.hpp"
#include "support/random.hpp"

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

namespace ferry_test::scatter_unique_test {

// Every space with units of one size.
using unique_points = zipped<decltype(spaces), decltype(axis<float, ferry::half_t, std::int64_t>), 0>;
TEMPLATE_LIST_TEST_CASE("assume_unique and reject", "[scatter][duplicates]", unique_points) {
  using space = at<0, TestType>;
  using T = at<1, TestType>;
  auto random = generator(23);
  const std::size_t rows = 300, n = 120;
  const exec_space exec;
  for (const std::size_t width : {1u, 8u, 33u}) {
    const auto content = values<T>(random, rows * width);
    const auto batch = values<T>(random, n * width);
    auto ids = unique_indices<std::int64_t>(random, n, rows);
    const auto device = make<ferry::device_space>("values", n, width, batch);
    const auto host = make<ferry::pageable_space>("values", n, width, batch);
    const auto good = scattered(content, width, ids, batch, false, "duplicates::last");
    const auto sum = scattered(content, width, ids, batch, true, "duplicates::sum");
    const auto run = [&](const auto& sources, auto path) {
      CAPTURE(space::name, width, path.name);
      auto table = make<space>("weights", rows, width, content);
      ferry::scatter(exec, table, ids, sources, path, ferry::duplicates::assume_unique{}).wait();
      CHECK(close(take(table), good));
      auto added = make<space>("weights", rows, width, content);
      ferry::scatter_add(exec, added, ids, sources, path, ferry::duplicates::assume_unique{}).wait();
      CHECK(close(take(added), sum));
      const auto plan = ferry::make_plan(exec, ids, rows);
      auto planned = make<space>("weights", rows, width, content);
      ferry::scatter(exec, planned, plan, sources, path, ferry::duplicates::assume_unique{}).wait();
      CHECK(close(take(planned), good));
      auto checked = make<space>("weights", rows, width, content);
      ferry::scatter(exec, checked, ids, sources, path, ferry::duplicates::reject{}).wait();
      CHECK(close(take(checked), good));

      auto trusted = make<space>("weights", rows, width, content);
      ferry::scatter(exec, trusted, ids, sources, path, ferry::duplicates::assume_unique{},
                     ferry::bounds::unchecked{})
          .wait();
      CHECK(close(take(trusted), good));
      auto sorted = make<space>("weights", rows, width, content);
      ferry::scatter_add(exec, sorted, ids, sources, ferry::bounds::unchecked{}, path).wait();
      CHECK(close(take(sorted), sum));

      auto twice = ids;
      twice[7] = twice[90];
      twice[8] = twice[91];
      const auto low = std::min(twice[90], twice[91]);
      auto weights = make<space>("weights", rows, width, content);
      auto refused = ferry::scatter_add(exec, weights, twice, sources, path, ferry::duplicates::reject{});
      CHECK_THROWS_MATCHES(
          refused.wait(), ferry::invalid_argument,
          Catch::Matchers::MessageMatches(Catch::Matchers::ContainsSubstring("2 rows of 'weights'") &&
                                          Catch::Matchers::EndsWith("row " + std::to_string(low))));
      CHECK(same_bits(take(weights), content));
    };
    if (direct_runs<space>()) run(device, ferry::path::direct{});
    if constexpr (space::is_host_accessible) run(device, ferry::path::staged{});
    run(host, ferry::path::staged{});
  }
}

}  // namespace ferry_test::scatter_unique_test
