// SPDX-License-Identifier: Apache-2.0
#include "plan_oracle.hpp"
#include "support/arrays.hpp"
#include "support/oracle.hpp"
#include "support/random.hpp"

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

/// Plans on both sides of the sizes at which a device sorts by warps, by one block or by several.
namespace ferry_test::plan_sizes_test {

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

namespace {

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

}  // namespace

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
                         Catch::Matchers::MessageMatches(Catch::Matchers::ContainsSubstring(first)));
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

}  // namespace ferry_test::plan_sizes_test
