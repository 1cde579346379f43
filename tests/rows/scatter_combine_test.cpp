// SPDX-License-Identifier: Apache-2.0
#include "support/matrix.hpp"
#include "support/oracle.hpp"
#include "support/test.hpp"

namespace ferry_test::scatter_combine_test {

/// Which of the two verbs takes path::direct; the other one takes path::staged.
enum class goes_direct { scatter, scatter_add };
template <goes_direct... Verbs>
inline constexpr auto in_turn = axis<std::integral_constant<goes_direct, Verbs>...>;

/// scatter and scatter_add under a policy that combines. One row is named by a third of the batch, so that
/// long segments are combined too.
template <class T, class policy, goes_direct Verb>
void check_combination() {
  auto random = generator(21);
  const std::size_t rows = 53, n = 300;
  const exec_space exec;
  for (const std::size_t width : {1u, 4u, 7u, 64u, 68u}) {
    const auto content = values<T>(random, rows * width);
    const auto batch = values<T>(random, n * width);
    auto ids = indices<std::int32_t>(random, n, rows);
    for (std::size_t p = 0; p < n; p += 3) ids[p] = 17;
    const auto replaced_by = scattered(content, width, ids, batch, false, policy::name);
    const auto added_by = scattered(content, width, ids, batch, true, policy::name);
    const auto values_here = make<ferry::device_space>("values", n, width, batch);
    const auto replace = [&](auto space, auto path) {
      CAPTURE(width, policy::name, space.name, path.name);
      auto replaced = make<decltype(space)>("weights", rows, width, content);
      ferry::scatter(exec, replaced, ids, values_here, policy{}, path).wait();
      CHECK(close(take(replaced), replaced_by));
    };
    const auto add = [&](auto space, auto path) {
      CAPTURE(width, policy::name, space.name, path.name);
      auto added = make<decltype(space)>("weights", rows, width, content);
      ferry::scatter_add(exec, added, ids, values_here, policy{}, path).wait();
      // The mean is rounded before it is added.
      CHECK(close(take(added), added_by, 13.0));
    };
    if constexpr (Verb == goes_direct::scatter) {
      replace(ferry::device_space{}, ferry::path::direct{});
      add(ferry::pageable_space{}, ferry::path::staged{});
    } else {
      replace(ferry::pageable_space{}, ferry::path::staged{});
      add(ferry::device_space{}, ferry::path::direct{});
    }
  }
}

// Every type and policy with both verbs, one of which goes direct and the other one staged.
using combination_points = rotated<decltype(axis<float, double, std::int32_t>), decltype(combinations),
                                   decltype(in_turn<goes_direct::scatter, goes_direct::scatter_add>)>;
TEMPLATE_LIST_TEST_CASE("every duplicates policy on wide element types", "[scatter][duplicates]",
                        combination_points) {
  check_combination<at<0, TestType>, at<1, TestType>, at<2, TestType>::value>();
}

namespace scatter_combine_narrow {

// As on wide types, where the other verb goes direct with the same policy. Those that keep one value move units.
using combination_points = rotated<decltype(axis<ferry::half_t, ferry::bhalf_t, std::int64_t>),
                                   decltype(axis<ferry::duplicates::sum, ferry::duplicates::mean>),
                                   decltype(in_turn<goes_direct::scatter_add, goes_direct::scatter>)>;
TEMPLATE_LIST_TEST_CASE("sums and means of the other element types", "[scatter][duplicates]",
                        combination_points) {
  check_combination<at<0, TestType>, at<1, TestType>, at<2, TestType>::value>();
}

}  // namespace scatter_combine_narrow

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

      if constexpr (std::is_same_v<decltype(path), ferry::path::direct>) {
        auto trusted = make<space>("weights", rows, width, content);
        ferry::scatter(exec, trusted, ids, sources, path, ferry::duplicates::assume_unique{},
                       ferry::bounds::unchecked{})
            .wait();
        CHECK(close(take(trusted), good));
      } else {
        auto sorted = make<space>("weights", rows, width, content);
        ferry::scatter_add(exec, sorted, ids, sources, ferry::bounds::unchecked{}, path).wait();
        CHECK(close(take(sorted), sum));
      }

      auto twice = ids;
      twice[7] = twice[90];
      twice[8] = twice[91];
      const auto low = std::min(twice[90], twice[91]);
      auto weights = make<space>("weights", rows, width, content);
      auto refused = ferry::scatter_add(exec, weights, twice, sources, path, ferry::duplicates::reject{});
      CHECK_THROWS_MATCHES(refused.wait(), ferry::invalid_argument,
                           MessageMatches(ContainsSubstring("2 rows of 'weights'") &&
                                          Catch::Matchers::EndsWith("row " + std::to_string(low))));
      CHECK(same_bits(take(weights), content));
    };
    if (direct_runs<space>()) run(device, ferry::path::direct{});
    if constexpr (space::is_host_accessible) run(device, ferry::path::staged{});
    run(host, ferry::path::staged{});
  }
}

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

}  // namespace ferry_test::scatter_combine_test
