// SPDX-License-Identifier: Apache-2.0
#include "support/test.hpp"

#include <ferry/plan/detail/row_source.hpp>
#include <ferry/rows/detail/row_jobs.hpp>

/// A device's kernels for rows without packets, run on a host.
namespace ferry_test::masked_tiles_test {

namespace kernels = ferry::kernels;

/// A batch of segments: some rows several times, items beyond the count.
struct batch {
  std::vector<std::int64_t> rows, begin{0}, order;
  std::int64_t count = 0;

  batch(std::mt19937_64& random, std::int64_t table_rows, std::int64_t items) {
    std::vector<std::vector<std::int64_t>> positions(static_cast<std::size_t>(table_rows));
    for (std::int64_t p = 0; p < items; ++p)
      positions[random() % static_cast<std::uint64_t>(table_rows)].push_back(p);
    for (std::size_t r = 0; r < positions.size(); ++r) {
      if (positions[r].empty()) continue;
      rows.push_back(static_cast<std::int64_t>(r));
      order.insert(order.end(), positions[r].begin(), positions[r].end());
      begin.push_back(static_cast<std::int64_t>(order.size()));
    }
    count = static_cast<std::int64_t>(rows.size());
    rows.resize(static_cast<std::size_t>(items));
    begin.resize(static_cast<std::size_t>(items) + 1);
  }
  [[nodiscard]] kernels::plan_rows source() const {
    return {rows.data(), begin.data(), order.data(), &count, nullptr, nullptr};
  }
};

template <class T>
std::vector<T> random_numbers(std::mt19937_64& random, std::int64_t count) {
  std::vector<T> numbers(static_cast<std::size_t>(count));
  for (T& number : numbers)
    number = ferry::convert<T>(static_cast<float>(static_cast<int>(random() % 2001) - 1000) / 7.0f);
  return numbers;
}

template <class Tile, class Duplicates, class T, class Operation>
std::vector<T> applied(std::vector<T> table, const batch& rows, const std::vector<T>& values,
                       std::int64_t values_stride, std::int64_t width, std::int64_t table_stride,
                       Operation make_operation) {
  using compute = ferry::accumulation_t<T>;
  const auto items = static_cast<std::int64_t>(rows.rows.size());
  const auto kernel = ferry::detail::apply_kernel<compute, Tile, Duplicates>(
      rows.source(), items, values.data(), values_stride, width, make_operation(table.data(), table_stride));
  for (std::int64_t i = items * kernel.per_item(); i-- > 0;) kernel(i);
  return table;
}

TEMPLATE_TEST_CASE("masked tiles give the bits of single elements and leave what lies beside rows", "[rows]",
                   float, double, ferry::half_t, ferry::bhalf_t, std::int8_t) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 300; ++round) {
    const auto below = [&](std::int64_t limit) {
      return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(limit));
    };
    const std::int64_t width = 1 + below(300), rows = 1 + below(9), items = 1 + below(20);
    const std::int64_t table_stride = width + below(4), values_stride = width + below(4);
    const batch segments(random, rows, items);
    const auto table = random_numbers<TestType>(random, rows * table_stride);
    const auto values = random_numbers<TestType>(random, items * values_stride);
    CAPTURE(width, table_stride, values_stride, items);
    const auto same = [&](auto duplicates, auto make_operation) {
      using policy = decltype(duplicates);
      const auto single = applied<kernels::single_tile, policy>(table, segments, values, values_stride, width,
                                                                table_stride, make_operation);
      const auto masked = applied<kernels::masked_tile, policy>(table, segments, values, values_stride, width,
                                                                table_stride, make_operation);
      return std::memcmp(single.data(), masked.data(), single.size() * sizeof(TestType)) == 0;
    };
    const auto add = [](TestType* target, std::int64_t stride) {
      return kernels::add_row<TestType>{target, stride};
    };
    const auto replace = [](TestType* target, std::int64_t stride) {
      return kernels::replace_row<TestType>(target, stride);
    };
    REQUIRE(same(ferry::duplicates::sum{}, add));
    REQUIRE(same(ferry::duplicates::mean{}, add));
    REQUIRE(same(ferry::duplicates::last{}, replace));
    REQUIRE(same(ferry::duplicates::first{}, replace));

    // An oracle of one case, so that the tiles are not wrong together.
    const auto last = applied<kernels::masked_tile, ferry::duplicates::last>(
        table, segments, values, values_stride, width, table_stride, replace);
    auto expected = table;
    for (std::int64_t s = 0; s < segments.count; ++s) {
      const auto segment = static_cast<std::size_t>(s);
      const std::int64_t position = segments.order[static_cast<std::size_t>(segments.begin[segment + 1] - 1)];
      std::memcpy(expected.data() + segments.rows[segment] * table_stride,
                  values.data() + position * values_stride,
                  static_cast<std::size_t>(width) * sizeof(TestType));
    }
    REQUIRE(std::memcmp(last.data(), expected.data(), last.size() * sizeof(TestType)) == 0);
  }
}

}  // namespace ferry_test::masked_tiles_test
