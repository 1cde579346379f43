// SPDX-License-Identifier: Apache-2.0
#include "plan_oracle.hpp"
#include "support/matrix.hpp"
#include "support/oracle.hpp"
#include "support/test.hpp"

namespace ferry_test::plan_test {

template <class Index, class Bounds = ferry::bounds::skip>
void check_plan(const std::vector<Index>& ids, std::size_t rows, Bounds bounds = {}) {
  CAPTURE(ids.size(), rows, Bounds::name);
  const exec_space exec;
  const auto plan = ferry::make_plan(exec, ids, rows, bounds);
  REQUIRE(plan.positions() == static_cast<std::int64_t>(ids.size()));
  REQUIRE(plan.rows() == static_cast<std::int64_t>(rows));
  const bool clamps = std::is_same_v<Bounds, ferry::bounds::clamp>;
  const auto expected = expected_plan(ids, rows, clamps ? on_bad::clamp : on_bad::leave);
  REQUIRE(plan.unique_count() == static_cast<std::int64_t>(expected.unique_rows.size()));
  check_same(arrays_of<exec_space>(plan), expected);
}

TEMPLATE_TEST_CASE("make_plan against a stable sort", "[plan]", std::int32_t, std::int64_t, std::uint32_t,
                   std::uint64_t) {
  auto random = generator(41);
  for (const std::size_t rows : {1u, 2u, 255u, 2047u, 2048u, 2049u, 1000000u})
    for (const std::size_t n : {0u, 1u, 2u, 31u, 1000u, 4096u, 4097u, 30000u})
      check_plan(indices<TestType>(random, n, rows), rows);
}

TEMPLATE_TEST_CASE("make_plan with indices outside of the table", "[plan]", std::int32_t, std::uint64_t) {
  auto random = generator(42);
  for (const std::size_t n : {1u, 33u, 9001u}) {
    auto ids = indices<TestType>(random, n, 77);
    for (std::size_t p = 0; p < n; p += 3) ids[p] = static_cast<TestType>(p % 2 == 0 ? -1 : 77);
    check_plan(ids, 77);
    check_plan(std::vector<TestType>(n, static_cast<TestType>(-5)), 77);
    check_plan(std::vector<TestType>(n, static_cast<TestType>(76)), 77);
  }
  check_plan(std::vector<TestType>{0, 1, 2}, 0);
}

TEST_CASE("make_plan of batches that are all alike", "[plan]") {
  for (const std::size_t n : {1u, 4095u, 4096u, 4097u, 65535u, 65536u, 65537u}) {
    check_plan(std::vector<std::int32_t>(n, 7), 8);   // one row
    check_plan(std::vector<std::int32_t>(n, 0), 1);   // the only row
    check_plan(std::vector<std::int32_t>(n, -1), 8);  // all skipped
    check_plan(std::vector<std::int64_t>(n, 8), 8);   // all past the end
    check_plan(std::vector<std::int64_t>(n, 8), 8, ferry::bounds::clamp{});
    check_plan(std::vector<std::int64_t>(n, -9), 8, ferry::bounds::check{});
    check_plan(std::vector<std::uint64_t>(n, std::numeric_limits<std::uint64_t>::max()), 8);
  }
}

TEST_CASE("make_plan finds runs of neighbouring rows", "[plan]") {
  auto random = generator(44);
  for (const std::size_t n : {1u, 2u, 4096u, 65537u}) {
    std::vector<std::int64_t> upwards(n), even(n), pieces(n);
    for (std::size_t p = 0; p < n; ++p) {
      upwards[p] = static_cast<std::int64_t>(p + 3);
      even[p] = static_cast<std::int64_t>(2 * p);
      pieces[p] = static_cast<std::int64_t>(p + p / 37);  // a gap after every 37 rows
    }
    for (auto* ids : {&upwards, &even, &pieces}) {
      check_plan(*ids, 2 * n + 3);
      std::shuffle(ids->begin(), ids->end(), random);
      check_plan(*ids, 2 * n + 3);
      ids->resize(n / 2 + 1);
      ids->insert(ids->end(), ids->begin(), ids->end());  // every row twice
      check_plan(*ids, 2 * n + 3);
    }
  }
  // A run that ends at the table's end must not go on into the positions without a row.
  check_plan(std::vector<int>{5, 6, 7, 8, 9, -1}, 8);
  check_plan(std::vector<int>{7, 7, -1, 0}, 8);
}

TEMPLATE_TEST_CASE("make_plan of random batches around the sizes of chunks and blocks", "[plan]",
                   std::int32_t, std::uint64_t) {
  auto random = generator(45);
  for (const std::size_t n : {4095u, 4096u, 4097u, 65535u, 65536u, 65537u, 200000u})
    for (const std::size_t rows : {3u, 5000u, 70000u, 2000000000u}) {
      auto ids = indices<TestType>(random, n, rows);
      check_plan(ids, rows);
      for (std::size_t p = 0; p < n; p += 1 + random() % 9) ids[p] = static_cast<TestType>(-1);
      check_plan(ids, rows);
    }
}

TEST_CASE("a plan does not depend on the instance or on the number of its threads", "[plan]") {
  auto random = generator(46);
  const std::size_t rows = 30000, n = 100000;
  const auto ids = indices<std::int64_t>(random, n, rows);
  const auto expected = expected_plan(ids, rows, on_bad::leave);
  using host_space = Kokkos::DefaultHostExecutionSpace;
  // Instances of fewer threads, where there are threads to share out.
  if (host_space{}.concurrency() > 1)
    for (const auto& instance : Kokkos::Experimental::partition_space(host_space{}, 1, 1)) {
      CAPTURE(instance.concurrency());
      check_same(arrays_of<host_space>(ferry::make_plan(instance, ids, rows)), expected);
    }
  check_same(arrays_of<host_space>(ferry::make_plan(host_space{}, ids, rows)), expected);
  for (int repeat = 0; repeat < 3; ++repeat)
    check_same(arrays_of<exec_space>(ferry::make_plan(exec_space{}, ids, rows)), expected);
}

TEST_CASE("a plan serves many verbs, outlives its indices and may die before its verbs have ended",
          "[plan]") {
  auto random = generator(43);
  const std::size_t rows = 500, width = 16, n = 2000;
  const auto content = values<double>(random, rows * width);
  const auto batch = values<double>(random, n * width);
  auto ids = indices<std::int64_t>(random, n, rows);
  const auto original = ids;
  const exec_space exec;
  auto table = make<ferry::mapped_space>("weights", rows, width, content);
  const auto device = make<ferry::device_space>("values", n, width, batch);
  ferry::tensor<double, ferry::device_space> out("batch", n, width);
  ferry::ticket gathered_rows;
  ferry::ticket added_rows;
  {
    const auto plan = ferry::make_plan(exec, ids, rows);
    std::fill(ids.begin(), ids.end(), -1);
    gathered_rows = ferry::gather(exec, table, plan, out);
    added_rows = ferry::scatter_add(exec, table, plan, device);
  }
  gathered_rows.wait();
  added_rows.wait();
  CHECK(same_bits(take(out), gathered(content, width, original, std::vector<double>(n * width))));
  CHECK(close(take(table), scattered(content, width, original, batch, true, "duplicates::sum")));
}

}  // namespace ferry_test::plan_test
