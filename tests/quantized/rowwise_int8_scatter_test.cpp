// SPDX-License-Identifier: Apache-2.0
#include "rowwise_int8.hpp"
#include "support/matrix.hpp"
#include "support/paths.hpp"

#include <catch2/catch_template_test_macros.hpp>

namespace ferry_test::rowwise_int8_scatter_test {

/// True if the rows are named by the indices themselves or by a plan.
enum class named_by { indices, plan };

template <class V, class Space, class ValueSpace, class Duplicates, named_by How, class Path>
void scatter_int8(std::mt19937_64& random, std::size_t rows, std::size_t width, std::size_t n, Path path) {
  CAPTURE(Space::name, ValueSpace::name, path.name, Duplicates::name, How == named_by::plan, rows, width, n);
  const bool unique = std::is_same_v<Duplicates, ferry::duplicates::assume_unique> ||
                      std::is_same_v<Duplicates, ferry::duplicates::reject>;
  const auto records = records_of(uneven_rows<float>(random, rows, width), width);
  const auto batch = uneven_rows<V>(random, n, width);
  const auto ids =
      unique ? unique_indices<std::int64_t>(random, n, rows) : indices<std::int64_t>(random, n, rows);
  const auto expected = scattered_records(records, width, ids, batch, Duplicates::name);
  const auto source = make<ValueSpace>("values", n, width, batch);
  const exec_space exec;
  auto table = table_of<Space>(records, width);
  if constexpr (How == named_by::plan)
    ferry::scatter(exec, table, ferry::make_plan(exec, ids, rows), source, path, Duplicates{}).wait();
  else
    ferry::scatter(exec, table, ids, source, path, Duplicates{}).wait();
  CHECK(take(table.records()) == expected);
}

using int8_scatter_points = zipped<decltype(spaces), decltype(spaces), 0, 3>;
TEMPLATE_LIST_TEST_CASE("scatter into 8-bit tables of every space", "[int8][scatter][once]",
                        int8_scatter_points) {
  using space = at<0, TestType>;
  using value_space = at<1, TestType>;
  using ferry::duplicates::last, ferry::duplicates::sum;
  auto random = generator(111);
  for_covering_paths<space, value_space, work::moves>([&](auto path) {
    const auto run = [&](std::size_t rows, std::size_t width, std::size_t n) {
      scatter_int8<float, space, value_space, last, named_by::indices>(random, rows, width, n, path);
      // Rows are combined where the values are, whatever the way of their records.
      if constexpr (std::is_same_v<space, value_space>)
        scatter_int8<float, space, value_space, sum, named_by::plan>(random, rows, width, n, path);
    };
    for (const std::size_t width : {1u, 3u, 16u, 33u, 128u})
      for (const std::size_t n : {0u, 1u, 130u}) run(211, width, n);
    scatter_int8<float, space, value_space, last, named_by::indices>(random, 9000, 128, 20000, path);
  });
}

template <class Duplicates, named_by How>
struct duplicates_by {
  using policy = Duplicates;
  static constexpr named_by how = How;
};
inline constexpr auto every_duplicates =
    axis<duplicates_by<ferry::duplicates::sum, named_by::indices>,
         duplicates_by<ferry::duplicates::mean, named_by::plan>,
         duplicates_by<ferry::duplicates::last, named_by::plan>,
         duplicates_by<ferry::duplicates::first, named_by::indices>,
         duplicates_by<ferry::duplicates::assume_unique, named_by::indices>,
         duplicates_by<ferry::duplicates::reject, named_by::plan>>;

// Every policy with two types, every type with one policy that combines: what is quantised is then of one type or of
// that in which it sums.
using int8_value_points = zipped<decltype(every_duplicates), decltype(floats), 0, 2>;
TEMPLATE_LIST_TEST_CASE("scatter into 8-bit tables of every float type, with every policy for duplicates",
                        "[int8][scatter]", int8_value_points) {
  using duplicates = typename at<0, TestType>::policy;
  using value = at<1, TestType>;
  constexpr named_by how = at<0, TestType>::how;
  using device = ferry::device_space;
  auto random = generator(112);
  for (const std::size_t width : {1u, 4u, 7u, 33u})
    scatter_int8<value, device, device, duplicates, how>(random, 97, width, 90, ferry::path::direct{});
}

TEMPLATE_TEST_CASE("scatter into 8-bit tables while the host's threads write", "[int8][scatter]",
                   ferry::duplicates::mean, ferry::duplicates::first, ferry::duplicates::assume_unique,
                   ferry::duplicates::reject) {
  using host = ferry::pageable_space;
  auto random = generator(115);
  for (const std::size_t width : {1u, 4u, 7u, 33u}) {
    scatter_int8<float, host, host, TestType, named_by::indices>(random, 97, width, 90,
                                                                 ferry::path::staged{});
    if constexpr (std::is_same_v<TestType, ferry::duplicates::mean>)
      scatter_int8<float, host, host, TestType, named_by::plan>(random, 97, width, 90, ferry::path::staged{});
    else if (direct_runs<host>())
      scatter_int8<float, host, host, TestType, named_by::indices>(random, 97, width, 90,
                                                                   ferry::path::ordered{});
  }
}

TEST_CASE("an 8-bit table: a scatter that nobody waits for, then a gather on the same instance", "[int8]") {
  auto random = generator(114);
  const std::size_t rows = 2000, width = 64, n = 1500;
  const exec_space exec;
  auto records = records_of(uneven_rows<float>(random, rows, width), width);
  auto table = table_of<ferry::mapped_space>(records, width);
  for (int round = 0; round < 5; ++round) {
    const auto batch = uneven_rows<float>(random, n, width);
    const auto ids = indices<std::int32_t>(random, n, rows);
    const auto source = make<ferry::device_space>("values", n, width, batch);
    ferry::tensor<float, ferry::device_space> out("batch", n, width);
    {
      const auto plan = ferry::make_plan(exec, ids, rows);
      ferry::scatter(exec, table, plan, source, ferry::duplicates::mean{}).detach();
      ferry::gather(exec, table, plan, out).wait();
    }
    records = scattered_records(records, width, ids, batch, "duplicates::mean");
    CHECK(same_values(take(out), gathered(as<float>(values_of(records, width)), width, ids,
                                          std::vector<float>(n * width))));
  }
}

}  // namespace ferry_test::rowwise_int8_scatter_test
