// SPDX-License-Identifier: Apache-2.0
#include "distributed/kit.hpp"

#include <ferry/distributed/sharded/detail/kernel_route.hpp>
#include <ferry/distributed/sharded/detail/pull_rows.hpp>

#include <catch2/catch_template_test_macros.hpp>

#include <array>
#include <limits>
#include <utility>

/// Routes that kernels make, against those of the host, and rows that an owner pulls by them.
namespace ferry_test::row_route_test {

namespace {

using main_exec = Kokkos::DefaultExecutionSpace;
using wire = ferry::detail::wire_space<main_exec>;
using ferry::detail::row_route;
namespace detail = ferry::detail;

/// Sizes about the lengths of chunks, of what a thread reads at once, and of a block.
constexpr std::array<std::size_t, 22> sizes{0,  1,  7,  8,   9,   15,  16,   17,   31,   32,   33,
                                            63, 64, 65, 127, 128, 129, 1023, 1024, 1025, 4097, 20001};

void compare(const row_route<wire>& route, const row_route<wire>& expected) {
  REQUIRE(route.positions == expected.positions);
  REQUIRE(route.begin == expected.begin);
  REQUIRE(route.everywhere == expected.everywhere);
  REQUIRE(route.signed_indices == expected.signed_indices);
  REQUIRE(route.report.out_of_range == expected.report.out_of_range);
  if (expected.report.out_of_range != 0) {
    REQUIRE(route.report.first_position == expected.report.first_position);
    REQUIRE(route.report.first_index == expected.report.first_index);
  }
  REQUIRE(ferry::make_ref(route.place).rank == 1);  // of an empty batch, too: verbs read the lists
  REQUIRE(ferry::make_ref(route.rows).rank == 1);
  REQUIRE(route.place.size() == expected.place.size());
  REQUIRE(same_bits(route.place.data(), expected.place.data(), route.place.size()));
  REQUIRE(same_bits(route.rows.data(), expected.rows.data(), route.rows.size()));
}

template <class Bounds, class Table, class Named>
row_route<wire> by_kernels(const main_exec& exec, const Table& table, const Named& named) {
  detail::routed_lists lists;
  auto route = detail::route_by_kernels<Bounds>("scatter", exec, table, named, lists);
  detail::bring_to_host(exec, lists, route);
  return route;
}

/// Calls test(sharding) for every sharding whose rows have one owner.
template <class Test>
void for_each_owning(int ranks, const Test& test) {
  test(ferry::sharding::cyclic{});
  test(ferry::sharding::block{});
  test(ferry::sharding::hashed<7>{});
  test(ferry::sharding::table_wise{.rank = ranks - 1});
}

template <class Index>
void compare_indices(int ranks) {
  auto random = generator(301 + static_cast<std::uint64_t>(ranks));
  const main_exec exec;
  const auto comm = group_of(ranks);
  for_each_owning(ranks, [&](auto spread) {
    const std::size_t rows = 1 + random() % 300;
    const ferry::sharded_table<float, host, decltype(spread)> table("w", comm, rows, 1, spread);
    for (const std::size_t count : sizes) {
      INFO(ranks << " ranks, " << rows << " rows, " << count << " positions, " << decltype(spread)::name);
      auto ids = indices<Index>(random, count, rows);
      const auto check = [&] {
        ferry::tensor<Index, ferry::device_space> device_ids("indices", ids.size());
        if (!ids.empty()) ferry::copy(exec, ids, device_ids).wait();
        const auto named = detail::read_only(ferry::make_ref(device_ids));
        const auto listed = detail::read_only(ferry::make_ref(ids));
        const auto run = [&]<class Bounds>(Bounds) {
          const auto expected = detail::route_rows<Bounds>(exec, table, named);
          compare(by_kernels<Bounds>(exec, table, named), expected);
          compare(by_kernels<Bounds>(exec, table, listed), expected);
          compare(detail::route_batch<Bounds>("gather", exec, table, named), expected);
          compare(detail::route_batch<Bounds>("gather", exec, table, listed), expected);
        };
        run(ferry::bounds::check{});
        run(ferry::bounds::clamp{});
        run(ferry::bounds::skip{});
        const auto plan = ferry::make_plan(exec, ids, rows, ferry::bounds::skip{});
        compare(by_kernels<ferry::bounds::check>(exec, table, plan),
                detail::route_rows<ferry::bounds::check>(exec, table, plan));
        const auto checked = ferry::make_plan(exec, ids, rows);
        const auto expected = detail::route_rows<ferry::bounds::check>(exec, table, checked);
        compare(by_kernels<ferry::bounds::check>(exec, table, checked), expected);
        compare(detail::route_batch<ferry::bounds::check>("gather", exec, table, checked), expected);
      };
      check();
      if (count == 0) continue;
      for (int i = 0; i < 3; ++i)
        ids[random() % count] = random() % 2 == 0 ? static_cast<Index>(-1) : static_cast<Index>(rows + i);
      ids[random() % count] = std::numeric_limits<Index>::max();
      check();
    }
  });
}

}  // namespace

TEST_CASE("kernels group positions by owner as the host does", "[distributed][route]") {
  for (const int ranks : {1, 2, 3, 8, 17, 64, 70}) compare_indices<std::int64_t>(ranks);
}

TEST_CASE("kernels route indices of other types", "[distributed][route]") {
  compare_indices<std::int32_t>(5);
  compare_indices<std::uint32_t>(5);
  compare_indices<std::uint64_t>(2);
}

namespace {

struct twelve_bytes {
  std::int32_t a, b, c;
  bool operator==(const twelve_bytes&) const = default;
};

/// The number n as an element.
template <class T>
T element(int n) {
  if constexpr (std::is_same_v<T, twelve_bytes>)
    return {n, -n, n + 1};
  else
    return static_cast<T>(static_cast<float>(n % 251));
}

template <class T>
void pull_from(int ranks, std::size_t columns, std::size_t gap) {
  auto random = generator(333 + columns);
  const main_exec exec;
  const auto comm = group_of(ranks);
  const std::size_t rows = 77;
  const ferry::sharded_table<float, host> table("w", comm, rows, 1);
  INFO(ranks << " ranks, " << columns << " columns of " << sizeof(T) << " bytes, " << gap << " between rows");
  std::vector<std::vector<std::int64_t>> ids;
  std::vector<std::vector<T>> content;
  std::vector<ferry::tensor<T, ferry::device_space>> arrays;
  std::vector<detail::routed_lists> lists(static_cast<std::size_t>(ranks));
  detail::batch_headers headers;
  int number = 0;
  for (int r = 0; r < ranks; ++r) {
    const auto place = static_cast<std::size_t>(r);
    const std::size_t count = r == 1 ? 0 : random() % 200;
    ids.push_back(indices<std::int64_t>(random, count, rows));
    content.emplace_back();
    for (std::size_t i = 0; i < count * (columns + gap); ++i) content.back().push_back(element<T>(number++));
    arrays.emplace_back("values", count, columns + gap);
    ferry::tensor<T, host> host_values("values", count, columns + gap);
    std::copy(content.back().begin(), content.back().end(), host_values.data());
    ferry::copy(exec, host_values, arrays.back()).wait();
    auto values = detail::read_only(ferry::make_ref(arrays.back()));
    values.extents[1] = static_cast<std::int64_t>(columns);  // columns of wider rows
    const auto route = detail::route_by_kernels<ferry::bounds::check>(
        "scatter", exec, table, detail::read_only(ferry::make_ref(ids.back())), lists[place], values);
    headers.offers.push_back(detail::offer_batch(exec, exec, lists[place], values));
    for (std::size_t owner = 0; owner < static_cast<std::size_t>(ranks); ++owner)
      headers.counts.push_back(route.begin[owner + 1] - route.begin[owner]);
  }
  REQUIRE(detail::can_pull<main_exec>(headers.offers));
  for (int owner = 0; owner < ranks; ++owner) {
    const auto pulled =
        detail::pull_rows<T>("scatter", exec, owner, headers, static_cast<std::int64_t>(columns));
    exec.fence("pulled");
    std::vector<std::int64_t> expected_rows;
    std::vector<T> expected;
    for (std::size_t r = 0; r < ids.size(); ++r)
      for (std::size_t p = 0; p < ids[r].size(); ++p)
        if (table.owner(ids[r][p]) == owner) {
          expected_rows.push_back(table.local_row(ids[r][p]));
          const auto first = content[r].begin() + static_cast<std::ptrdiff_t>(p * (columns + gap));
          expected.insert(expected.end(), first, first + static_cast<std::ptrdiff_t>(columns));
        }
    ferry::tensor<std::int64_t, host> rows_here("rows", pulled.rows.rows());
    ferry::tensor<T, host> values_here("values", pulled.values.rows(), columns);
    ferry::copy(exec, pulled.rows, rows_here).wait();
    ferry::copy(exec, pulled.values, values_here).wait();
    REQUIRE(rows_here.size() == expected_rows.size());
    REQUIRE(same_bits(rows_here.data(), expected_rows.data(), expected_rows.size()));
    REQUIRE(same_bits(values_here.data(), expected.data(), expected.size()));
  }
  headers.offers.back().is_made = 0;
  REQUIRE(!detail::can_pull<main_exec>(headers.offers));
}

}  // namespace

TEMPLATE_TEST_CASE("an owner pulls its rows of all batches, by rank and position", "[distributed][route]",
                   float, double, ferry::half_t, std::int8_t, twelve_bytes) {
  for (const int ranks : {1, 2, 3, 8, 64})
    for (const std::size_t columns : {std::size_t{1}, std::size_t{4}, std::size_t{7}, std::size_t{32}})
      for (const std::size_t gap : {std::size_t{0}, std::size_t{4}, std::size_t{5}})
        pull_from<TestType>(ranks, columns, gap);
}

}  // namespace ferry_test::row_route_test
