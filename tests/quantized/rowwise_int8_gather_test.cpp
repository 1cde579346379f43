// SPDX-License-Identifier: Apache-2.0
#include "rowwise_int8.hpp"
#include "support/matrix.hpp"
#include "support/paths.hpp"

#include <catch2/catch_template_test_macros.hpp>

namespace ferry_test::rowwise_int8_gather_test {

/// By indices, and where asked for by a plan: what either names is a list of rows when the paths part.
template <class Out, class Space, class OutSpace, bool ByPlan = false>
void gather_int8_everywhere(std::mt19937_64& random, std::size_t rows, std::size_t width, std::size_t n) {
  const auto records = records_of(uneven_rows<float>(random, rows, width), width);
  const auto table = table_of<Space>(records, width);
  const auto numbers = as<Out>(values_of(records, width));
  const auto poison = values<Out>(random, n * width);
  const auto ids = indices<std::int64_t>(random, n, rows);
  const auto expected = gathered(numbers, width, ids, poison);
  const exec_space exec;
  for_covering_paths<Space, OutSpace, work::moves>([&](auto path) {
    CAPTURE(Space::name, OutSpace::name, path.name, rows, width, n);
    auto out = make<OutSpace>("batch", n, width, poison);
    ferry::gather(exec, table, ids, out, path).wait();
    CHECK(same_values(take(out), expected));
    if constexpr (ByPlan) {
      const auto plan = ferry::make_plan(exec, ids, rows);
      auto by_plan = make<OutSpace>("batch", n, width, poison);
      ferry::gather(exec, table, plan, by_plan, path).wait();
      CHECK(same_values(take(by_plan), expected));
    }
  });
}

// The verb is that of all quantizations, which goes between every two spaces in quantized_gather_test.cpp.
using int8_points = zipped<decltype(spaces), decltype(spaces), 0, 1>;
TEMPLATE_LIST_TEST_CASE("gather from 8-bit tables, of every space", "[int8][gather][once]", int8_points) {
  using space = at<0, TestType>;
  using out_space = at<1, TestType>;
  constexpr bool by_plan = std::is_same_v<space, out_space>;
  auto random = generator(101);
  for (const std::size_t width : {1u, 3u, 16u, 33u, 128u})
    for (const std::size_t n : {0u, 1u, 33u, 257u})
      gather_int8_everywhere<float, space, out_space, by_plan>(random, 211, width, n);
  gather_int8_everywhere<float, space, out_space, by_plan>(random, 500, 128, 30000);  // several slots
}

using int8_float_points =
    zipped<decltype(floats), decltype(axis<ferry::device_space, ferry::pinned_space>), 0>;
TEMPLATE_LIST_TEST_CASE("gather from 8-bit tables to every float type", "[int8][gather]", int8_float_points) {
  using element = at<0, TestType>;
  using space = at<1, TestType>;
  auto random = generator(102);
  for (std::size_t width = 1; width < 20; ++width)
    gather_int8_everywhere<element, space, ferry::device_space>(random, 97, width, 130);
}

TEST_CASE("gather from 8-bit tables into rows that break alignment", "[int8][gather]") {
  auto random = generator(104);
  const std::size_t rows = 40, n = 23;
  const exec_space exec;
  for (const std::size_t width : {4u, 8u, 33u, 128u})
    for (const std::size_t offset : {0u, 1u, 2u, 3u, 4u}) {
      CAPTURE(width, offset);
      const auto records = records_of(uneven_rows<float>(random, rows, width), width);
      const auto table = table_of<ferry::device_space>(records, width);
      const auto ids = indices<std::int32_t>(random, n, rows);
      const auto poison = values<ferry::half_t>(random, n * width + 8);
      auto memory = make<ferry::device_space>("memory", poison);
      ferry::gather(exec, table, ids, view_at(memory, offset, n, width)).wait();
      auto expected = poison;
      const auto part = gathered(as<ferry::half_t>(values_of(records, width)), width, ids,
                                 std::vector<ferry::half_t>(n * width));
      std::copy(part.begin(), part.end(), expected.begin() + static_cast<std::ptrdiff_t>(offset));
      CHECK(same_values(take(memory), expected));
    }
}

TEMPLATE_TEST_CASE("rows of an 8-bit table arrive in a new tensor of floats", "[int8][gather_to]",
                   ferry::device_space, ferry::pinned_space, ferry::pageable_space) {
  auto random = generator(105);
  const exec_space exec;
  const std::size_t rows = 60, width = 37, n = 200;
  const auto records = records_of(uneven_rows<float>(random, rows, width), width);
  const auto table = table_of<ferry::mapped_space>(records, width);
  auto ids = indices<std::int64_t>(random, n, rows);
  const auto decoded = as<float>(values_of(records, width));
  const auto expect = [&](const ferry::tensor<float, TestType>& result) {
    CHECK(result.rank() == 2);
    CHECK(result.width() == width);
    CHECK(same_values(take(result), gathered(decoded, width, ids, std::vector<float>(n * width))));
  };
  expect(ferry::gather<TestType>(exec, table, ids).get());
  ids[3] = ids[150] = -1;  // rows of zeros
  expect(
      ferry::gather<TestType>(exec, table, ferry::make_plan(exec, ids, rows, ferry::bounds::skip{})).get());
}

}  // namespace ferry_test::rowwise_int8_gather_test
