// SPDX-License-Identifier: Apache-2.0
#include "support/arrays.hpp"
#include "support/oracle.hpp"
#include "support/paths.hpp"
#include "support/random.hpp"

#include <catch2/catch_template_test_macros.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

/// The order in which the values of a row are added, bit by bit, against plain loops over lists of values.
namespace ferry_test::sum_order_test {
namespace {

/// Rows of all these numbers of values, in a batch in random order.
struct problem {
  std::vector<std::int32_t> indices;
  std::size_t rows;
};
problem shuffled(const std::vector<std::size_t>& counts, unsigned seed) {
  problem result{{}, counts.size() + 1};
  for (std::size_t row = 0; row < counts.size(); ++row)
    result.indices.insert(result.indices.end(), counts[row], static_cast<std::int32_t>(row));
  auto random = generator(seed);
  std::shuffle(result.indices.begin(), result.indices.end(), random);
  return result;
}

template <class T>
std::vector<T> sums_of(const problem& batch, const std::vector<T>& values, std::size_t width, bool mean) {
  using number = std::conditional_t<std::is_same_v<T, double>, double, float>;
  std::vector<T> result(batch.rows * width, ferry::convert<T>(number(0)));
  std::vector<std::vector<std::size_t>> positions(batch.rows);
  for (std::size_t p = 0; p < batch.indices.size(); ++p)
    positions[static_cast<std::size_t>(batch.indices[p])].push_back(p);
  for (std::size_t row = 0; row < batch.rows; ++row)
    for (std::size_t c = 0; c < width && !positions[row].empty(); ++c) {
      std::vector<number> list;
      for (const std::size_t p : positions[row])
        list.push_back(ferry::convert<number>(values[p * width + c]));
      number sum = sum_in_pieces(list);
      if (mean) sum /= static_cast<number>(list.size());
      result[row * width + c] = ferry::convert<T>(sum);
    }
  return result;
}

template <class T, class Space, class Named, class... Policies>
void check_order(const Named& named, const std::vector<T>& values, const std::vector<T>& expected,
                 std::size_t width, Policies... policies) {
  CAPTURE(Space::name, width, values.size());
  const exec_space exec;
  const std::size_t rows = expected.size() / width;
  const auto batch = make<ferry::device_space>("values", values.size() / width, width, values);
  auto table = make<Space>("table", rows, width, std::vector<T>(expected.size(), ferry::convert<T>(0.0F)));
  ferry::scatter_add(exec, table, named, batch, policies...).wait();
  CHECK(same_bits(take(table), expected));
}

}  // namespace

TEMPLATE_TEST_CASE("the values of a row are added in the documented order", "[sum_order]", double,
                   ferry::half_t) {
  const exec_space exec;
  const std::vector<std::vector<std::size_t>> batches = {
      {1},
      {63, 64},
      {64, 1, 65, 2, 95, 96, 97, 3, 127, 128, 129},
      {1024},
      {1000, 33, 991, 64, 0, 5, 2000},
      {8191, 1, 8192, 8193, 64, 8223, 8447, 63, 8448, 8703, 40'000, 7}};
  unsigned seed = 3;
  for (const auto& counts : batches)
    for (const std::size_t width : {1u, 4u, 7u, 20u}) {
      const problem batch = shuffled(counts, ++seed);
      auto random = generator(++seed);
      const auto values = ferry_test::values<TestType>(random, batch.indices.size() * width);
      const auto expected = sums_of(batch, values, width, false);
      check_order<TestType, ferry::device_space>(batch.indices, values, expected, width);
      check_order<TestType, ferry::pageable_space>(batch.indices, values, expected, width,
                                                   ferry::path::staged{});
      const auto plan = ferry::make_plan(exec, batch.indices, batch.rows);
      check_order<TestType, ferry::device_space>(plan, values, expected, width);
      check_order<TestType, ferry::device_space>(plan, values, sums_of(batch, values, width, true), width,
                                                 ferry::duplicates::mean{});
    }
}

}  // namespace ferry_test::sum_order_test
