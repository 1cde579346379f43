#include "rowwise_int8.hpp"
#include "support/matrix.hpp"
#include "support/paths.hpp"

#include <catch2/catch_template_test_macros.hpp>

namespace ferry_test {
namespace {

template <class V, class Space, class ValueSpace, class Duplicates>
void scatter_int8_everywhere(std::mt19937_64& random, std::size_t rows, std::size_t width, std::size_t n,
                             Duplicates duplicates) {
  const bool unique = std::is_same_v<Duplicates, ferry::duplicates::assume_unique> ||
                      std::is_same_v<Duplicates, ferry::duplicates::reject>;
  const auto records = records_of(uneven_rows<float>(random, rows, width), width);
  const auto batch = uneven_rows<V>(random, n, width);
  const auto which =
      unique ? unique_indices<std::int64_t>(random, n, rows) : indices<std::int64_t>(random, n, rows);
  const auto expected = scattered_records(records, width, which, batch, Duplicates::name);
  const auto from = make<ValueSpace>("values", n, width, batch);
  const exec_space exec;
  const auto plan = ferry::make_plan(exec, which, rows);
  for_each_path<Space, ValueSpace, work::moves>([&](auto path) {
    CAPTURE(Space::name, ValueSpace::name, path.name, Duplicates::name, rows, width, n);
    auto table = table_of<Space>(records, width);
    ferry::scatter(exec, table, which, from, path, duplicates).wait();
    CHECK(take(table.records()) == expected);
    auto by_plan = table_of<Space>(records, width);
    ferry::scatter(exec, by_plan, plan, from, path, duplicates).wait();
    CHECK(take(by_plan.records()) == expected);
  });
}

}  // namespace

using int8_scatter_points = product<decltype(spaces), decltype(spaces)>;
TEMPLATE_LIST_TEST_CASE("scatter into 8-bit tables, between every two spaces", "[int8][scatter]",
                        int8_scatter_points) {
  using space = at<0, TestType>;
  using value_space = at<1, TestType>;
  auto random = generator(111);
  const auto run = [&](auto duplicates) {
    for (const std::size_t width : {1u, 3u, 16u, 33u, 128u})
      for (const std::size_t n : {0u, 1u, 130u})
        scatter_int8_everywhere<float, space, value_space>(random, 211, width, n, duplicates);
  };
  run(ferry::duplicates::last{});
  run(ferry::duplicates::sum{});
  scatter_int8_everywhere<float, space, value_space>(random, 9000, 128, 20000, ferry::duplicates::last{});
}

using int8_value_points =
    product<decltype(floats), decltype(axis<ferry::duplicates::sum, ferry::duplicates::mean,
                                            ferry::duplicates::last, ferry::duplicates::first,
                                            ferry::duplicates::assume_unique, ferry::duplicates::reject>)>;
TEMPLATE_LIST_TEST_CASE("scatter into 8-bit tables of every float type, with every policy for duplicates",
                        "[int8][scatter]", int8_value_points) {
  using value = at<0, TestType>;
  using duplicates = at<1, TestType>;
  auto random = generator(112);
  for (const std::size_t width : {1u, 4u, 7u, 33u}) {
    scatter_int8_everywhere<value, ferry::device_space, ferry::device_space>(random, 97, width, 90,
                                                                             duplicates{});
  }
}

TEMPLATE_TEST_CASE("scatter into 8-bit tables beside the host's threads", "[int8][scatter]",
                   ferry::duplicates::mean, ferry::duplicates::first, ferry::duplicates::assume_unique,
                   ferry::duplicates::reject) {
  auto random = generator(115);
  for (const std::size_t width : {1u, 4u, 7u, 33u})
    scatter_int8_everywhere<float, ferry::pageable_space, ferry::pageable_space>(random, 97, width, 90,
                                                                                 TestType{});
}

TEST_CASE("an 8-bit table: a scatter that nobody waits for, then a gather on the same instance", "[int8]") {
  auto random = generator(114);
  const std::size_t rows = 2000, width = 64, n = 1500;
  const exec_space exec;
  auto records = records_of(uneven_rows<float>(random, rows, width), width);
  auto table = table_of<ferry::mapped_space>(records, width);
  for (int round = 0; round < 5; ++round) {
    const auto batch = uneven_rows<float>(random, n, width);
    const auto which = indices<std::int32_t>(random, n, rows);
    const auto from = make<ferry::device_space>("values", n, width, batch);
    ferry::tensor<float, ferry::device_space> out("batch", n, width);
    {
      const auto plan = ferry::make_plan(exec, which, rows);
      ferry::scatter(exec, table, plan, from, ferry::duplicates::mean{}).detach();
      ferry::gather(exec, table, plan, out).wait();
    }
    records = scattered_records(records, width, which, batch, "duplicates::mean");
    CHECK(same_values(take(out), gathered(as<float>(values_of(records, width)), width, which,
                                          std::vector<float>(n * width))));
  }
}

}  // namespace ferry_test
