#include "rowwise_int8.hpp"
#include "support/matrix.hpp"
#include "support/paths.hpp"

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

namespace ferry_test {
namespace {

/// The records after a scatter: combined in the order of the positions in the accumulation type, quantised
/// once.
template <class V, class Index>
std::vector<std::byte> scattered_records(std::vector<std::byte> records, std::size_t width,
                                         const std::vector<Index>& which, const std::vector<V>& batch,
                                         std::string_view how, on_bad policy = on_bad::leave) {
  using sum = std::conditional_t<std::is_same_v<V, double>, double, float>;
  const std::size_t bytes = record_bytes(width);
  const std::size_t rows = records.size() / bytes;
  std::map<std::int64_t, std::vector<std::size_t>> named;
  for (std::size_t p = 0; p < which.size(); ++p)
    if (const auto row = row_of(which[p], rows, policy); row >= 0) named[row].push_back(p);
  for (const auto& [row, positions] : named) {
    const std::size_t from = how == "duplicates::last" ? positions.back() : positions.front();
    std::vector<float> made = row_at(batch, width, from);
    if (how == "duplicates::sum" || how == "duplicates::mean")
      for (std::size_t c = 0; c < width; ++c) {
        sum total = static_cast<sum>(number(batch[positions[0] * width + c]));
        for (std::size_t k = 1; k < positions.size(); ++k)
          total += static_cast<sum>(number(batch[positions[k] * width + c]));
        if (how == "duplicates::mean") total /= static_cast<sum>(positions.size());
        made[c] = static_cast<float>(total);
      }
    const auto record = record_of(made);
    std::copy(record.begin(), record.end(),
              records.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(row) * bytes));
  }
  return records;
}

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
  run(ferry::duplicates::assume_unique{});
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
    scatter_int8_everywhere<value, ferry::pageable_space, ferry::pageable_space>(random, 97, width, 90,
                                                                                 duplicates{});
  }
}

TEMPLATE_TEST_CASE("a faulty batch leaves an 8-bit table untouched", "[int8][scatter][errors]",
                   ferry::device_space, ferry::pinned_space, ferry::mapped_space, ferry::pageable_space) {
  auto random = generator(113);
  const std::size_t rows = 61, width = 13, n = 40;
  const auto records = records_of(uneven_rows<float>(random, rows, width), width);
  const auto batch = uneven_rows<float>(random, n, width);
  const exec_space exec;
  const auto says = [](const char* text) {
    return Catch::Matchers::MessageMatches(Catch::Matchers::ContainsSubstring(text));
  };
  const auto run = [&](auto value_space) {
    using values_in = decltype(value_space);
    const auto from = make<values_in>("values", n, width, batch);
    for_each_path<TestType, values_in, work::moves>([&](auto path) {
      CAPTURE(TestType::name, values_in::name, path.name);
      auto table = table_of<TestType>(records, width);
      auto bad = unique_indices<std::int32_t>(random, n, rows);
      bad[7] = 61;
      bad[30] = -4;
      const auto plan = ferry::make_plan(exec, bad, rows);
      const char* outside = "ferry::scatter: 2 of 40 indices are outside of 'weights' [61 x 13]";
      const auto refuse = [&](const auto& which, auto duplicates) {
        CHECK_THROWS_MATCHES(ferry::scatter(exec, table, which, from, path, duplicates).wait(),
                             ferry::out_of_range, says(outside));
      };
      refuse(bad, ferry::duplicates::last{});
      refuse(bad, ferry::duplicates::mean{});
      refuse(bad, ferry::duplicates::assume_unique{});
      refuse(plan, ferry::duplicates::first{});
      refuse(plan, ferry::duplicates::assume_unique{});
      auto twice = unique_indices<std::int32_t>(random, n, rows);
      twice[9] = twice[21];
      CHECK_THROWS_MATCHES(ferry::scatter(exec, table, twice, from, path, ferry::duplicates::reject{}).wait(),
                           ferry::invalid_argument, says("ferry::scatter: 1 rows of 'weights' [61 x 13]"));
      CHECK(take(table.records()) == records);

      // Where bad indices are skipped or clamped, the others are written.
      ferry::scatter(exec, table, bad, from, path, ferry::bounds::skip{}, ferry::duplicates::sum{}).wait();
      auto expected = scattered_records(records, width, bad, batch, "duplicates::sum");
      CHECK(take(table.records()) == expected);
      ferry::scatter(exec, table, bad, from, path, ferry::bounds::skip{}, ferry::duplicates::assume_unique{})
          .wait();
      expected = scattered_records(expected, width, bad, batch, "duplicates::assume_unique");
      CHECK(take(table.records()) == expected);
      ferry::scatter(exec, table, bad, from, path, ferry::bounds::clamp{}).wait();
      expected = scattered_records(expected, width, bad, batch, "duplicates::last", on_bad::clamp);
      CHECK(take(table.records()) == expected);
    });
  };
  run(ferry::device_space{});
  run(ferry::pageable_space{});
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
