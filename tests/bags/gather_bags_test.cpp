// SPDX-License-Identifier: Apache-2.0
#include "bags/bags.hpp"
#include "support/matrix.hpp"

#include <ferry/bags.hpp>

namespace ferry_test::gather_bags_test {

template <class T>
using compute_of = std::conditional_t<std::is_integral_v<T>, std::int64_t,
                                      std::conditional_t<std::is_same_v<T, double>, double, float>>;

constexpr std::size_t widths[] = {1, 2, 3, 4, 5, 7, 8, 12, 16, 17, 31, 64, 100, 128, 130, 513};

template <class Pooling, class T, class Offset>
void check_shapes(std::uint64_t salt) {
  auto random = generator(salt);
  const exec_space exec;
  for (const std::size_t width : widths) {
    CAPTURE(width, Pooling::name);
    const std::size_t rows = 50 + random() % 200;
    const std::size_t bags = width > 100 ? 23 : 61;
    const auto offsets = bag_offsets(random, bags);
    const auto ids = indices<std::int64_t>(random, offsets.back(), rows);
    const auto values = uneven_values<T>(random, rows * width);
    const auto table = make<ferry::device_space>("table", rows, width, values);
    ferry::tensor<T, ferry::device_space> out("pooled", bags, width);
    put(out, std::vector<T>(bags * width, T(77)));
    const auto expected = pooled<compute_of<T>, T>(values, width, as_rows(ids), offsets, Pooling::name);
    ferry::gather_bags(exec, table, ids, as_offsets<Offset>(offsets), out, Pooling{}).wait();
    CHECK(same_bits(take(out), expected.rows));

    // As torch gives them, without the end.
    auto open = as_offsets<Offset>(offsets);
    open.pop_back();
    put(out, std::vector<T>(bags * width, T(77)));
    ferry::gather_bags(exec, table, ids, open, out, Pooling{}).wait();
    CHECK(same_bits(take(out), expected.rows));

    put(out, std::vector<T>(bags * width, T(77)));
    const auto plan = ferry::make_plan(exec, ids, rows);
    ferry::gather_bags(exec, table, plan, as_offsets<Offset>(offsets), out, Pooling{}).wait();
    CHECK(same_bits(take(out), expected.rows));

    if constexpr (Pooling::selects) {
      ferry::tensor<Offset, ferry::device_space> maxima("maxima", bags, width);
      put(maxima, std::vector<Offset>(bags * width, Offset{55}));
      ferry::gather_bags(exec, table, ids, offsets, out, maxima, Pooling{}).wait();
      CHECK(same_bits(take(out), expected.rows));
      CHECK(as_rows(take(maxima)) == expected.positions);
    }
  }
}

TEMPLATE_TEST_CASE("Bags of any shape are pooled to the bits of a plain loop", "", float, double,
                   ferry::half_t, ferry::bhalf_t, std::int32_t) {
  check_shapes<ferry::pooling::sum, TestType, std::int64_t>(1);
  if constexpr (!std::is_same_v<TestType, ferry::bhalf_t>) {
    check_shapes<ferry::pooling::mean, TestType, std::int32_t>(2);
    check_shapes<ferry::pooling::max, TestType, std::int64_t>(3);
  }
}

TEST_CASE("Positions may have weights of any type") {
  auto random = generator(4);
  const exec_space exec;
  for (const std::size_t width : {1UL, 6UL, 64UL, 129UL}) {
    CAPTURE(width);
    const std::size_t rows = 90, bags = 40;
    const auto offsets = bag_offsets(random, bags);
    const auto ids = indices<std::int32_t>(random, offsets.back(), rows);
    const auto values = uneven_values<float>(random, rows * width);
    const auto table = make<ferry::device_space>("table", rows, width, values);
    ferry::tensor<float, ferry::device_space> out("pooled", bags, width);
    const auto weights = uneven_values<float>(random, ids.size());
    const auto in_pooling = [&](auto pooling, const auto& of_positions, auto compute) {
      put(out, std::vector<float>(bags * width, 77.0F));
      ferry::gather_bags(exec, table, ids, offsets, out, of_positions, pooling).wait();
      const auto expected =
          pooled<decltype(compute), float>(values, width, as_rows(ids), offsets, pooling.name, of_positions);
      CHECK(same_bits(take(out), expected.rows));
    };
    in_pooling(ferry::pooling::sum{}, weights, 0.0F);
    in_pooling(ferry::pooling::mean{}, weights, 0.0F);
    in_pooling(ferry::pooling::sum{}, uneven_values<double>(random, ids.size()), 0.0);
    in_pooling(ferry::pooling::sum{}, uneven_values<ferry::half_t>(random, ids.size()), 0.0F);
    in_pooling(ferry::pooling::mean{}, uneven_values<std::int32_t>(random, ids.size()), 0.0F);
  }
}

TEST_CASE("Half rows pooled to float lose nothing, and float rows pooled to half are rounded once") {
  auto random = generator(5);
  const exec_space exec;
  const std::size_t rows = 70, bags = 30, width = 40;
  const auto offsets = bag_offsets(random, bags);
  const auto ids = indices<std::uint32_t>(random, offsets.back(), rows);
  const auto narrow = uneven_values<ferry::half_t>(random, rows * width);
  const auto wide = uneven_values<float>(random, rows * width);
  {
    const auto table = make<ferry::device_space>("table", rows, width, narrow);
    ferry::tensor<float, ferry::device_space> out("pooled", bags, width);
    ferry::gather_bags(exec, table, ids, offsets, out, ferry::pooling::sum{}).wait();
    CHECK(same_bits(take(out),
                    pooled<float, float>(narrow, width, as_rows(ids), offsets, "pooling::sum").rows));
  }
  {
    const auto table = make<ferry::device_space>("table", rows, width, wide);
    ferry::tensor<ferry::bhalf_t, ferry::device_space> out("pooled", bags, width);
    ferry::gather_bags(exec, table, ids, offsets, out).wait();  // pooling::mean
    CHECK(same_bits(take(out),
                    pooled<float, ferry::bhalf_t>(wide, width, as_rows(ids), offsets, "pooling::mean").rows));
  }
}

TEST_CASE("Bags of a fixed number of positions need no offsets") {
  auto random = generator(6);
  const exec_space exec;
  for (const int hotness : {0, 1, 2, 3, 8, 10, 13}) {
    CAPTURE(hotness);
    const std::size_t rows = 60, bags = 37, width = 24;
    std::vector<std::size_t> offsets;
    for (std::size_t b = 0; b <= bags; ++b) offsets.push_back(b * static_cast<std::size_t>(hotness));
    const auto ids = indices<std::uint64_t>(random, offsets.back(), rows);
    const auto values = uneven_values<float>(random, rows * width);
    const auto table = make<ferry::device_space>("table", rows, width, values);
    ferry::tensor<float, ferry::device_space> out("pooled", bags, width);
    put(out, std::vector<float>(bags * width, 77.0F));
    ferry::gather_bags(exec, table, ids, hotness, out, ferry::pooling::mean{}).wait();
    CHECK(same_bits(take(out),
                    pooled<float, float>(values, width, as_rows(ids), offsets, "pooling::mean").rows));
  }
}

TEST_CASE("Rows and bags may be slices and strided views") {
  auto random = generator(7);
  const exec_space exec;
  const std::size_t rows = 60, bags = 12, width = 5;
  const auto offsets = bag_offsets(random, bags);
  const auto ids = indices<std::int32_t>(random, offsets.back(), rows);
  const auto values = uneven_values<float>(random, (rows + 1) * width);
  const auto whole = make<ferry::device_space>("table", rows + 1, width, values);
  ferry::tensor<float, ferry::device_space> out("pooled", bags + 2, width);
  put(out, std::vector<float>(out.size(), 77.0F));
  auto slice = out.rows_between(1, bags + 1);
  ferry::gather_bags(exec, whole.rows_between(1, rows + 1), ids, offsets, slice, ferry::pooling::sum{})
      .wait();
  const auto expected = pooled<float, float>(std::vector<float>(values.begin() + width, values.end()), width,
                                             as_rows(ids), offsets, "pooling::sum");
  const auto result = take(out);
  CHECK(same_bits(std::vector<float>(result.begin() + width, result.end() - width), expected.rows));
  for (std::size_t c = 0; c < width; ++c) {
    CHECK(result[c] == 77.0F);
    CHECK(result[result.size() - 1 - c] == 77.0F);
  }
}

TEST_CASE("No bags, no positions and rows without elements are legal") {
  const exec_space exec;
  const ferry::tensor<float, ferry::device_space> table("table", 4, 3), empty("empty", 0, 3),
      flat("flat", 4, 0);
  const std::vector<std::int64_t> nothing, start{0}, ends{0, 0, 0};
  ferry::tensor<float, ferry::device_space> none("pooled", 0, 3), two("pooled", 2, 3), thin("pooled", 2, 0);
  ferry::gather_bags(exec, table, nothing, nothing, none).wait();
  ferry::gather_bags(exec, table, nothing, start, none).wait();
  ferry::gather_bags(exec, table, nothing, 7, none).wait();
  put(two, std::vector<float>(6, 77.0F));
  ferry::gather_bags(exec, empty, nothing, ends, two).wait();
  CHECK(take(two) == std::vector<float>(6, 0.0F));
  ferry::gather_bags(exec, flat, std::vector<int>{1, 2}, std::vector<int>{0, 1, 2}, thin).wait();
}

}  // namespace ferry_test::gather_bags_test
