// SPDX-License-Identifier: Apache-2.0
#include "support/arrays.hpp"
#include "support/paths.hpp"
#include "support/random.hpp"

#include <catch2/catch_template_test_macros.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

/// scatter_add with duplicates::sum_any_order against plain loops.
namespace ferry_test::sum_any_order_test {
namespace {

using any_order = ferry::duplicates::sum_any_order;

struct batch {
  std::size_t rows, width;
  std::vector<std::int64_t> indices;
  std::vector<int> table, values;
};

/// Small integers, whose sums every element type holds exactly in any order. Row 1 is named by a quarter of
/// the positions, at most `most_hot` of them.
batch random_batch(std::size_t n, std::size_t rows, std::size_t width, std::size_t most_hot) {
  auto random = generator(static_cast<unsigned>(n * 131 + width));
  batch result{rows, width, std::vector<std::int64_t>(n), std::vector<int>(rows * width),
               std::vector<int>(n * width)};
  for (std::size_t p = 0; p < n; ++p) {
    const bool hot = rows > 1 && p % 4 == 0 && p / 4 < most_hot;
    result.indices[p] = hot ? 1 : static_cast<std::int64_t>(random() % rows);
  }
  for (auto& x : result.table) x = static_cast<int>(random() % 5);
  for (auto& x : result.values) x = static_cast<int>(random() % 3);
  return result;
}

std::vector<int> sums_of(const batch& problem) {
  std::vector<int> sums = problem.table;
  for (std::size_t p = 0; p < problem.indices.size(); ++p)
    for (std::size_t c = 0; c < problem.width; ++c)
      sums[static_cast<std::size_t>(problem.indices[p]) * problem.width + c] +=
          problem.values[p * problem.width + c];
  return sums;
}

template <class T>
std::vector<T> as(const std::vector<int>& numbers) {
  std::vector<T> result;
  for (const int x : numbers) result.push_back(ferry::convert<T>(static_cast<float>(x)));
  return result;
}
template <class T>
std::vector<float> as_floats(const std::vector<T>& numbers) {
  std::vector<float> result;
  for (const T& x : numbers) result.push_back(ferry::convert<float>(x));
  return result;
}

template <class T, class Space, class... Policies>
void check_sums(const batch& problem, Policies... policies) {
  CAPTURE(problem.indices.size(), problem.rows, problem.width, Space::name);
  const exec_space exec;
  auto table = make<Space>("table", problem.rows, problem.width, as<T>(problem.table));
  const auto values =
      make<ferry::device_space>("values", problem.indices.size(), problem.width, as<T>(problem.values));
  ferry::scatter_add(exec, table, problem.indices, values, any_order{}, policies...).wait();
  CHECK(as_floats(take(table)) == as_floats(as<T>(sums_of(problem))));
}

}  // namespace

TEMPLATE_TEST_CASE("sums that are exact in any order have the same bits", "[any_order]", float, double,
                   ferry::half_t, ferry::bhalf_t, std::int8_t, std::uint8_t, std::int16_t, std::int32_t,
                   std::uint32_t, std::int64_t, std::uint64_t) {
  for (const std::size_t width : {1u, 3u, 4u, 8u, 17u, 64u})
    for (const std::size_t n : {1u, 2u, 33u, 160u}) {
      const auto problem = random_batch(n, 37, width, 40);
      check_sums<TestType, ferry::device_space>(problem);
      check_sums<TestType, ferry::pinned_space>(problem);
    }
}

TEMPLATE_TEST_CASE("batches for many threads are summed in every space and on every path", "[any_order]",
                   ferry::device_space, ferry::pinned_space, ferry::mapped_space, ferry::pageable_space) {
  for (const std::size_t width : {1u, 2u, 5u, 128u}) {
    const auto problem = random_batch(3001, 211, width, 3001);
    check_sums<float, TestType>(problem);
    if (direct_runs<TestType>()) check_sums<float, TestType>(problem, ferry::path::ordered{});
    check_sums<float, TestType>(problem, ferry::bounds::unchecked{});
    if constexpr (TestType::is_host_accessible) check_sums<float, TestType>(problem, ferry::path::staged{});
  }
  check_sums<float, TestType>(random_batch(5000, 1, 64, 0));
}

TEST_CASE("random floats are summed within the bound of any order", "[any_order]") {
  const exec_space exec;
  auto random = generator(7);
  std::uniform_real_distribution<float> number(-1.0f, 1.0f);
  const std::size_t rows = 50, width = 36, n = 4000;
  std::vector<float> table(rows * width), values(n * width);
  std::vector<std::int32_t> indices(n);
  for (auto& x : table) x = number(random);
  for (auto& x : values) x = number(random);
  for (auto& i : indices) i = static_cast<std::int32_t>(random() % rows);
  std::vector<double> sum(table.begin(), table.end()), size(rows * width), count(rows, 0.0);
  for (std::size_t i = 0; i < size.size(); ++i) size[i] = std::abs(sum[i]);
  for (std::size_t p = 0; p < n; ++p) {
    const auto row = static_cast<std::size_t>(indices[p]);
    ++count[row];
    for (std::size_t c = 0; c < width; ++c) {
      sum[row * width + c] += static_cast<double>(values[p * width + c]);
      size[row * width + c] += std::abs(static_cast<double>(values[p * width + c]));
    }
  }
  auto table_array = make<ferry::device_space>("table", rows, width, table);
  ferry::scatter_add(exec, table_array, indices, make<ferry::device_space>("values", n, width, values),
                     any_order{})
      .wait();
  const auto result = take(table_array);
  double worst = 0.0;
  for (std::size_t i = 0; i < result.size(); ++i) {
    const double bound =
        count[i / width] * size[i] * static_cast<double>(std::numeric_limits<float>::epsilon());
    worst = std::max(worst, std::abs(static_cast<double>(result[i]) - sum[i]) / bound);
  }
  CHECK(worst <= 0.5);
}

TEST_CASE("values of another type are converted one by one", "[any_order]") {
  const auto problem = random_batch(500, 20, 12, 20);
  const exec_space exec;
  auto table = make<ferry::device_space>("table", problem.rows, problem.width, as<float>(problem.table));
  ferry::scatter_add(exec, table, problem.indices,
                     make<ferry::device_space>("values", problem.indices.size(), problem.width,
                                               as<std::int16_t>(problem.values)),
                     any_order{})
      .wait();
  CHECK(take(table) == as<float>(sums_of(problem)));
}

TEST_CASE("a plan makes any order that of the batch", "[any_order]") {
  const exec_space exec;
  auto random = generator(9);
  std::uniform_real_distribution<float> number(-1.0f, 1.0f);
  std::vector<float> values(900 * 7);
  std::vector<std::int64_t> indices(900);
  for (auto& x : values) x = number(random);
  for (auto& i : indices) i = static_cast<std::int64_t>(random() % 31);
  const auto gradients = make<ferry::device_space>("values", 900, 7, values);
  auto first = make<ferry::device_space>("one", 31, 7, std::vector<float>(31 * 7, 0.25f));
  auto second = make<ferry::device_space>("other", 31, 7, std::vector<float>(31 * 7, 0.25f));
  const auto plan = ferry::make_plan(exec, indices, 31);
  ferry::scatter_add(exec, first, plan, gradients, any_order{}).wait();
  ferry::scatter_add(exec, second, plan, gradients).wait();
  CHECK(take(first) == take(second));
}

TEST_CASE("bad indices are found before anything is added in any order", "[any_order]") {
  const exec_space exec;
  const std::vector<float> before(40, 1.0f);
  auto table = make<ferry::device_space>("table", 10, 4, before);
  const auto values = make<ferry::device_space>("values", 3, 4, std::vector<float>(12, 2.0f));
  const std::vector<std::int64_t> indices{3, 10, 3};
  CHECK_THROWS_AS(ferry::scatter_add(exec, table, indices, values, any_order{}).wait(), ferry::out_of_range);
  CHECK(take(table) == before);
  ferry::scatter_add(exec, table, indices, values, any_order{}, ferry::bounds::skip{}).wait();
  auto skipped = before;
  for (std::size_t c = 0; c < 4; ++c) skipped[12 + c] = 5.0f;
  CHECK(take(table) == skipped);
  ferry::scatter_add(exec, table, indices, values, any_order{}, ferry::bounds::clamp{}).wait();
  for (std::size_t c = 0; c < 4; ++c) skipped[12 + c] = 9.0f;
  for (std::size_t c = 0; c < 4; ++c) skipped[36 + c] = 3.0f;
  CHECK(take(table) == skipped);
  ferry::scatter_add(exec, table, std::vector<std::int64_t>{},
                     ferry::tensor<float, ferry::device_space>("none", 0, 4), any_order{})
      .wait();
  CHECK(take(table) == skipped);
}

}  // namespace ferry_test::sum_any_order_test
