// SPDX-License-Identifier: Apache-2.0
#include "support/matrix.hpp"
#include "support/oracle.hpp"
#include "support/test.hpp"

#include <ferry/int8.hpp>

namespace ferry_test::gather_test {

// The paths are the other gather's.
using from_to = zipped<decltype(spaces), decltype(spaces), 1>;

TEMPLATE_LIST_TEST_CASE("gather makes a tensor in any space, by indices and by a plan", "[gather_to]",
                        from_to) {
  using table_space = at<0, TestType>;
  using space = at<1, TestType>;
  auto random = generator(71);
  const std::size_t rows = 300, width = 12, n = 1000;
  const auto content = values<float>(random, rows * width);
  const auto ids = indices<std::int32_t>(random, n, rows);
  const auto table = make<table_space>("weights", rows, width, content);
  const auto expected = gathered(content, width, ids, std::vector<float>(n * width));
  const exec_space exec;
  for_covering_paths<table_space, space, work::moves>([&](auto path) {
    auto future = ferry::gather<space>(exec, table, ids, path);
    const ferry::tensor<float, space> result = future.get();
    CHECK(result.rank() == 2);
    CHECK(result.rows() == n);
    CHECK(result.width() == width);
    CHECK(result.label() == "weights::gathered");
    CHECK(same_bits(take(result), expected));
  });
  for_each_path<table_space, ferry::device_space, work::moves>([&](auto path) {
    const auto plan = ferry::make_plan(exec, ids, rows);
    CHECK(same_bits(take(ferry::gather<ferry::device_space>(exec, table, plan, path).get()), expected));
  });
}

TEST_CASE("a gathered tensor has the table's extents after the first", "[gather_to]") {
  const exec_space exec;
  const std::vector<std::int64_t> ids{2, 0};
  ferry::tensor<std::int32_t, ferry::device_space> cube("cube", 3, 2, 2);
  put(cube, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  const auto slabs = ferry::gather<ferry::pinned_space>(exec, cube, ids).get();
  CHECK(slabs.rank() == 3);
  CHECK(slabs.extent(0) == 2);
  CHECK(slabs.extent(1) == 2);
  CHECK(slabs.extent(2) == 2);
  CHECK(take(slabs) == std::vector<std::int32_t>{8, 9, 10, 11, 0, 1, 2, 3});

  const auto list = make<ferry::mapped_space>("list", std::vector<double>{5, 6, 7});
  const auto some = ferry::gather<ferry::device_space>(exec, list, std::span<const std::int64_t>(ids)).get();
  CHECK(some.rank() == 1);
  CHECK(take(some) == std::vector<double>{7, 5});

  const ferry::tensor<float, ferry::mapped_space, ferry::extents<ferry::dyn, 4>> fixed("fixed", 3);
  const auto none = ferry::gather<ferry::pageable_space>(exec, fixed, std::vector<std::int64_t>{}).get();
  CHECK(none.rows() == 0);
  CHECK(none.width() == 4);
}

// At namespace scope: nvcc can't name a local type in a kernel.
struct pair {
  float a;
  double b;
  bool operator==(const pair&) const = default;
};

TEMPLATE_TEST_CASE("positions without a row are zero", "[gather_to]", ferry::device_space,
                   ferry::pinned_space, ferry::mapped_space, ferry::pageable_space) {
  const exec_space exec;
  const auto table = make<ferry::mapped_space>("table", 2, 2, std::vector<float>{1, 2, 3, 4});
  const auto pairs = make<ferry::mapped_space>("pairs", std::vector<pair>{{1, 2}, {3, 4}});
  const std::vector<std::int64_t> ids{1, -1, 0, 2};
  const std::vector<float> expected{3, 4, 0, 0, 1, 2, 0, 0};
  // The next tensors get memory that was used before.
  const auto leave_used_memory = [] {
    for (const std::size_t bytes : {sizeof(float) * 8, sizeof(pair) * 4})
      make<TestType>("used", std::vector<unsigned char>(bytes, 0xA5));
  };
  for (int repeat = 0; repeat < 3; ++repeat) {
    leave_used_memory();
    CHECK(take(ferry::gather<TestType>(exec, table, ids, ferry::bounds::skip{}).get()) == expected);
    const auto plan = ferry::make_plan(exec, ids, 2, ferry::bounds::skip{});
    leave_used_memory();
    CHECK(take(ferry::gather<TestType>(exec, table, plan).get()) == expected);
    leave_used_memory();
    CHECK(take(ferry::gather<TestType>(exec, pairs, ids, ferry::bounds::skip{}).get()) ==
          std::vector<pair>{{3, 4}, {0, 0}, {1, 2}, {0, 0}});
  }
}

TEST_CASE("bad indices are thrown by get, every time", "[gather_to]") {
  const exec_space exec;
  const auto table = make<ferry::mapped_space>("table", 2, 1, std::vector<float>{1, 2});
  auto future = ferry::gather<ferry::pinned_space>(exec, table, std::vector<std::int64_t>{0, 9});
  CHECK_THROWS_AS(future.get(), ferry::out_of_range);
  CHECK_THROWS_AS(future.get(), ferry::out_of_range);
  auto good = ferry::gather<ferry::pinned_space>(exec, table, std::vector<std::int64_t>{0, 1});
  CHECK(take(good.get()) == std::vector<float>{1, 2});
  CHECK_THROWS_AS(good.get(), ferry::invalid_argument);
  const ferry::row_plan empty;
  CHECK_THROWS_AS(static_cast<void>(ferry::gather<ferry::device_space>(exec, table, empty)),
                  ferry::invalid_argument);
}

TEMPLATE_LIST_TEST_CASE("gather converts into a new tensor", "[gather_to]", from_to) {
  auto random = generator(75);
  const exec_space exec;
  const std::size_t rows = 50, width = 6;
  const auto content = values<float>(random, rows * width);
  const auto table = make<at<0, TestType>>("table", rows, width, content);
  const std::vector<std::int32_t> ids{49, -1, 0, 7};
  using space = at<1, TestType>;
  const ferry::tensor<double, space> wide =
      ferry::gather<space, double>(exec, table, ids, ferry::bounds::skip{}).get();
  std::vector<double> expected(4 * width);
  for (std::size_t p = 0; p < 4; ++p)
    for (std::size_t c = 0; c < width && ids[p] >= 0; ++c)
      expected[p * width + c] = static_cast<double>(content[static_cast<std::size_t>(ids[p]) * width + c]);
  CHECK(take(wide) == expected);
  const auto plan = ferry::make_plan(exec, ids, rows, ferry::bounds::clamp{});
  const ferry::tensor<ferry::half_t, space> narrow =
      ferry::gather<space, ferry::half_t>(exec, table.first(rows), plan).get();
  std::vector<ferry::half_t> rounded;
  for (const std::size_t row : {49u, 0u, 0u, 7u})
    for (std::size_t c = 0; c < width; ++c) rounded.push_back(ferry::half_t(content[row * width + c]));
  CHECK(same_bits(take(narrow), rounded));
  CHECK(narrow.label() == "table::gathered");
}

TEST_CASE("8-bit rows arrive in the type that was named", "[gather_to]") {
  auto random = generator(76);
  const exec_space exec;
  const auto content = make<ferry::pinned_space>("content", 20, 8, values<float>(random, 160));
  ferry::rowwise_int8_tensor<ferry::mapped_space> codes("codes", 20, 8);
  ferry::quantize(exec, content, codes).wait();
  const std::vector<std::int64_t> ids{19, 3};
  ferry::tensor<double, ferry::pinned_space> expected("expected", 2, 8);
  ferry::gather(exec, codes, ids, expected).wait();
  CHECK(
      same_bits(take(ferry::gather<ferry::pageable_space, double>(exec, codes, ids).get()), take(expected)));
}

}  // namespace ferry_test::gather_test
