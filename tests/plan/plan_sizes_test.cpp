// SPDX-License-Identifier: Apache-2.0
#include "plan_oracle.hpp"
#include "support/matrix.hpp"
#include "support/oracle.hpp"
#include "support/test.hpp"

#include <ferry/bags.hpp>
#include <ferry/int8.hpp>

namespace ferry_test::plan_sizes_test {

// Plans on both sides of the sizes at which a device sorts by warps, by one block or by several.

/// Rows of a policy of the user: the tables of two halves, one above the other.
struct mirrored_bounds {
  using policy_category = ferry::bounds_category;
  static constexpr std::string_view name = "mirrored_bounds";
  static constexpr bool reports = true;
  template <class Index>
  KOKKOS_FUNCTION static constexpr std::int64_t resolve(Index index, std::int64_t rows) {
    const auto row = static_cast<std::int64_t>(index);
    return row >= 0 && row < rows ? rows - 1 - row : -1;
  }
};

const std::size_t sizes[] = {0,    1,    2,    31,   32,   33,   511,  512,  513,  1023,
                             1024, 1025, 2047, 2048, 2049, 4095, 4096, 4097, 16384};

template <class Index, class Bounds = ferry::bounds::check>
void check_plan(const std::vector<Index>& ids, std::size_t rows, Bounds bounds = {}) {
  CAPTURE(ids.size(), rows, Bounds::name);
  const exec_space exec;
  const auto plan = ferry::make_plan(exec, ids, rows, bounds);
  const bool clamps = std::is_same_v<Bounds, ferry::bounds::clamp>;
  check_same(arrays_of<exec_space>(plan), expected_plan(ids, rows, clamps ? on_bad::clamp : on_bad::leave));
  // Kernels read what lies after the last segment, too.
  const auto total = static_cast<std::int64_t>(ids.size()), count = plan.unique_count();
  const auto rest_is = [&](const std::int64_t* array, std::int64_t number) {
    std::vector<std::int64_t> rest(static_cast<std::size_t>(total - count), -7);
    ferry::copy(exec, ferry::tensor_view<const std::int64_t, ferry::device_space>(array, total - count), rest)
        .wait();
    return std::all_of(rest.begin(), rest.end(), [number](std::int64_t value) { return value == number; });
  };
  if (count < total) {
    CHECK(rest_is(plan.storage()->unique_rows + count, 0));
    CHECK(rest_is(plan.storage()->segment_begin + count + 1, total));
  }
}

TEMPLATE_TEST_CASE("plans of small batches", "[plan][small]", std::int32_t, std::uint32_t, std::int64_t,
                   std::uint64_t) {
  auto random = generator(71);
  for (const std::size_t n : sizes) {
    std::vector<TestType> up(n), down(n), alike(n, TestType{5}), any(n), bad(n);
    for (std::size_t p = 0; p < n; ++p) {
      up[p] = static_cast<TestType>(p);
      down[p] = static_cast<TestType>(n - 1 - p);
      any[p] = static_cast<TestType>(random() % 100000);
      bad[p] = static_cast<TestType>(p % 3 == 0 ? random() : random() % 70);
    }
    check_plan(up, n);
    check_plan(down, n + 7, ferry::bounds::unchecked{});
    check_plan(alike, 6);
    check_plan(any, 100000);
    check_plan(any, 60000, ferry::bounds::skip{});
    check_plan(any, 60000, ferry::bounds::clamp{});
    check_plan(bad, 70);
    check_plan(bad, 70, ferry::bounds::skip{});
    check_plan(bad, 70, ferry::bounds::clamp{});
    check_plan(std::vector<TestType>(n, std::numeric_limits<TestType>::max()), 9);
    if constexpr (sizeof(TestType) == 8) {
      const std::size_t rows = std::size_t{1} << 49;
      for (auto& index : any) index = static_cast<TestType>(random() % rows);
      check_plan(any, rows);
    }
  }
}

TEST_CASE("plans of small batches under bounds of the user", "[plan][small]") {
  auto random = generator(72);
  const exec_space exec;
  for (const std::size_t n : {1u, 33u, 1025u, 5000u}) {
    const std::size_t rows = 3000;
    std::vector<std::int32_t> ids(n), mirrored(n);
    for (std::size_t p = 0; p < n; ++p) {
      const bool bad = p % 50 == 7;
      ids[p] = bad ? -4 : static_cast<std::int32_t>(random() % rows);
      mirrored[p] = bad ? -1 : static_cast<std::int32_t>(rows) - 1 - ids[p];
    }
    check_same(arrays_of<exec_space>(ferry::make_plan(exec, ids, rows, mirrored_bounds{})),
               expected_plan(mirrored, rows, on_bad::leave));
  }
}

TEST_CASE("a verb tells the bad indices of small plans, and writes nothing", "[plan][small]") {
  const exec_space exec;
  auto random = generator(73);
  const std::size_t rows = 90, width = 5;
  const auto content = values<float>(random, rows * width);
  for (const std::size_t n : {1u, 32u, 1024u, 1025u, 4096u, 4097u}) {
    CAPTURE(n);
    auto ids = indices<std::int64_t>(random, n, rows);
    ids[n / 2] = 9017;
    ids[n - 1] = -9;
    auto table = make<ferry::device_space>("weights", rows, width, content);
    const auto batch = make<ferry::device_space>("values", n, width, values<float>(random, n * width));
    const std::string first = n == 1 ? "-9" : "9017";
    CHECK_THROWS_MATCHES(ferry::scatter_add(exec, table, ids, batch).wait(), ferry::out_of_range,
                         MessageMatches(ContainsSubstring(first)));
    const auto plan = ferry::make_plan(exec, ids, rows);
    CHECK_THROWS_AS(ferry::scatter_add(exec, table, plan, batch).wait(), ferry::out_of_range);
    CHECK(same_bits(take(table), content));
  }
}

TEST_CASE("plans of two instances are made at once", "[plan][small]") {
  auto random = generator(74);
  const std::size_t rows = 100000;
  // One thread can't be shared out.
  std::vector<exec_space> instances(2);
  if (exec_space{}.concurrency() > 1)
    instances = Kokkos::Experimental::partition_space(exec_space{}, std::vector<int>{1, 1});
  for (const std::size_t n : {1000u, 4096u, 30000u}) {
    std::vector<std::vector<std::int64_t>> batches;
    std::vector<ferry::row_plan> plans;
    for (int turn = 0; turn < 12; ++turn) {
      batches.push_back(indices<std::int64_t>(random, n, rows));
      plans.push_back(ferry::make_plan(instances[static_cast<std::size_t>(turn) % 2], batches.back(), rows));
    }
    for (std::size_t turn = 0; turn < plans.size(); ++turn)
      check_same(arrays_of<exec_space>(plans[turn]), expected_plan(batches[turn], rows, on_bad::leave));
  }
}

const std::vector<std::int64_t> four_indices{7, 2, 7, 5};

void check(const ferry::row_plan& plan) {
  CHECK(plan.rows() == 9);
  CHECK(plan.positions() == 4);
  CHECK(plan.unique_count() == 3);
}

TEST_CASE("a plan takes a table in place of the number of its rows", "[plan]") {
  const exec_space exec;
  ferry::tensor<float, ferry::mapped_space> table("table", 9, 4);
  check(ferry::make_plan(exec, four_indices, table));
  check(ferry::make_plan(exec, four_indices, table.rows_between(0, 9), ferry::bounds::skip{}));
  const ferry::rowwise_int8_tensor<ferry::mapped_space> codes("codes", 9, 4);
  check(ferry::make_plan(exec, four_indices, codes));
  check(ferry::make_plan(
      exec, four_indices,
      ferry::optim::make_records<float, ferry::mapped_space>(ferry::optim::adam{}, "records", 9, 4)));
  CHECK(ferry::unique(exec, four_indices, table).rows.rows() == 3);
}

TEST_CASE("a plan in a workspace takes a table", "[plan]") {
  const exec_space exec;
  const ferry::tensor<float, ferry::mapped_space> table("table", 9, 4);
  const std::size_t bytes = ferry::plan_workspace_bytes(exec, 4, table);
  CHECK(bytes == ferry::plan_workspace_bytes(exec, 4, 9));
  ferry::tensor<std::byte, ferry::device_space> workspace("workspace", bytes);
  check(ferry::make_plan(exec, four_indices, table, workspace));
}

TEST_CASE("indices beyond the table of a plan are reported", "[plan]") {
  const exec_space exec;
  ferry::tensor<float, ferry::mapped_space> table("table", 7, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 4, 4);
  ferry::init::zeros(exec, table);
  const auto plan = ferry::make_plan(exec, four_indices, table);
  CHECK_THROWS_AS(ferry::gather(exec, table, plan, batch).wait(), ferry::out_of_range);
}

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

// Indices of rank 2 are those of rank 1, row by row; results of rank 1 have it in their types.

TEST_CASE("indices of rank 2 are read row by row", "[rank]") {
  const exec_space exec;
  auto random = generator(91);
  constexpr std::size_t rows = 30, width = 4, samples = 9, ids_of_sample = 3, n = samples * ids_of_sample;
  const auto start = values<float>(random, rows * width);
  const auto table = make<ferry::mapped_space>("table", rows, width, start);
  const auto listed = indices<std::int32_t>(random, n, rows);
  const auto line = make<ferry::mapped_space>("line", listed);
  const auto block = make<ferry::mapped_space>("block", samples, ids_of_sample, listed);
  auto batch = make<ferry::device_space>("batch", n, width, std::vector<float>(n * width, -1.0f));
  auto expected = make<ferry::device_space>("expected", n, width, std::vector<float>(n * width, -2.0f));
  ferry::gather(exec, table, line, expected).wait();
  ferry::gather(exec, table, block, batch).wait();
  CHECK(take(batch) == take(expected));
  CHECK(ferry::make_plan(exec, block, rows).positions() == static_cast<std::int64_t>(n));
  const auto rows_of_block = ferry::gather<ferry::mapped_space>(exec, table, block).get();
  CHECK(take(rows_of_block) == take(expected));

  auto line_table = make<ferry::mapped_space>("one", rows, width, start),
       block_table = make<ferry::mapped_space>("two", rows, width, start);
  ferry::scatter(exec, line_table, line, batch).wait();
  ferry::scatter(exec, block_table, block, batch).wait();
  ferry::scatter_add(exec, line_table, line, batch).wait();
  ferry::scatter_add(exec, block_table, block, batch).wait();
  const ferry::optim::sgd rule{.lr = 0.1};
  auto state = ferry::optim::make_state(rule, line_table),
       block_state = ferry::optim::make_state(rule, block_table);
  ferry::step(exec, rule, line_table, state, line, batch).wait();
  ferry::step(exec, rule, block_table, block_state, block, batch).wait();
  auto pooled =
      make<ferry::device_space>("pooled", samples, width, std::vector<float>(samples * width, -3.0f));
  auto sums = make<ferry::device_space>("sums", samples, width, std::vector<float>(samples * width, -4.0f));
  ferry::gather_bags(exec, line_table, line, 3, sums).wait();
  ferry::gather_bags(exec, block_table, block, 3, pooled).wait();
  ferry::step_bags(exec, rule, line_table, state, line, 3, sums).wait();
  ferry::step_bags(exec, rule, block_table, block_state, block, 3, sums).wait();
  CHECK(same_bits(take(sums), take(pooled)));
  CHECK(same_bits(take(line_table), take(block_table)));
}

TEST_CASE("arrays of rank 1 have it in their types", "[rank]") {
  const exec_space exec;
  const std::vector<std::int32_t> listed{7, 2, 7, 5};
  const auto result = ferry::unique(exec, listed, 10);
  const auto plan = ferry::make_plan(exec, listed, 10);
  STATIC_CHECK(decltype(ferry::to_kokkos(result.inverse))::rank() == 1);
  STATIC_CHECK(decltype(ferry::to_kokkos(result.counts))::rank() == 1);
  STATIC_CHECK(std::remove_cvref_t<decltype(result.rows)>::extents_type::rank == 1);
  STATIC_CHECK(decltype(plan.order())::extents_type::rank == 1);
  CHECK(result.inverse.rows() == 4);
  CHECK(result.rows.rows() == 3);

  auto matrix = make<ferry::mapped_space>("matrix", 3, 2, std::vector<float>{1, 2, 3, 4, 5, 6});
  const auto flat = matrix.flat();
  STATIC_CHECK(std::remove_cvref_t<decltype(flat)>::extents_type::rank == 1);
  CHECK(flat.rows() == 6);
  CHECK(flat.first(2).flat().rows() == 2);
  ferry::tensor<float, ferry::mapped_space> line("line", 6);
  ferry::copy(exec, flat, line).wait();
  CHECK(take(line) == std::vector<float>{1, 2, 3, 4, 5, 6});
  STATIC_CHECK(std::is_same_v<decltype(std::as_const(matrix).flat())::value_type, const float>);
}

}  // namespace ferry_test::plan_sizes_test
