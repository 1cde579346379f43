// SPDX-License-Identifier: Apache-2.0
#include "bags/bags.hpp"
#include "quantized/rowwise_int8.hpp"
#include "support/matrix.hpp"

#include <ferry/bags.hpp>
#include <ferry/int8.hpp>

namespace ferry_test::gather_bags_spaces_test {

constexpr std::size_t rows = 80, bags = 33, width = 20;

using space_pairs = ferry_test::product<decltype(ferry_test::spaces), decltype(ferry_test::spaces)>;

TEMPLATE_LIST_TEST_CASE("Bags of rows in any space are pooled into any space", "", space_pairs) {
  using space = at<0, TestType>;
  using out_space = at<1, TestType>;
  auto random = generator(11);
  const exec_space exec;
  const auto offsets = bag_offsets(random, bags);
  const auto ids = indices<std::int64_t>(random, offsets.back(), rows);
  const auto values = uneven_values<float>(random, rows * width);
  const auto weights = uneven_values<float>(random, ids.size());
  const auto table = make<space>("table", rows, width, values);
  const auto plan = ferry::make_plan(exec, ids, rows);
  ferry::tensor<float, out_space> out("pooled", bags, width);
  ferry::tensor<std::int32_t, out_space> maxima("maxima", bags, width);
  const std::vector<float> poison(bags * width, 77.0F);
  // A bag with a bad index keeps what it had, on its way through any ring too.
  auto bad = ids;
  const std::size_t position = random() % bad.size();
  bad[position] = -3;
  const auto means = pooled<float, float>(values, width, as_rows(ids), offsets, "pooling::mean");
  auto expected_rows = means.rows;
  for (std::size_t b = 0; b < bags; ++b)
    if (offsets[b] <= position && position < offsets[b + 1])
      std::fill_n(expected_rows.begin() + b * width, width, 77.0F);
  const auto refused = [&](auto path) {
    put(out, poison);
    CHECK_THROWS_AS(ferry::gather_bags(exec, table, bad, offsets, out, path).wait(), ferry::out_of_range);
    CHECK(same_bits(take(out), expected_rows));
  };
  // A pooling for each path: the paths differ in where rows and bags lie, not in what becomes of a row.
  const auto sums = pooled<float, float>(values, width, as_rows(ids), offsets, "pooling::sum", weights);
  put(out, poison);
  ferry::gather_bags(exec, table, ids, offsets, out, weights, ferry::pooling::sum{}, ferry::path::automatic{})
      .wait();
  CHECK(same_bits(take(out), sums.rows));
  if (direct_runs<space, out_space>()) {
    const auto most = pooled<float, float>(values, width, as_rows(ids), offsets, "pooling::max");
    put(out, poison);
    put(maxima, std::vector<std::int32_t>(bags * width, 5));
    ferry::gather_bags(exec, table, ids, offsets, out, maxima,
                       ferry::policies<ferry::path::direct, ferry::pooling::max>{})
        .wait();
    CHECK(same_bits(take(out), most.rows));
    CHECK(as_rows(take(maxima)) == most.positions);
    refused(ferry::path::direct{});
  }
  if constexpr (staged_compiles<space, out_space>) {
    put(out, poison);
    ferry::gather_bags(exec, table, plan, offsets, out, ferry::path::staged{}).wait();
    CHECK(same_bits(take(out), means.rows));
    refused(ferry::path::staged{});
  }
}

TEMPLATE_LIST_TEST_CASE("Indices, offsets and weights may lie in any space", "",
                        ferry_test::types_of<decltype(ferry_test::spaces)>) {
  auto random = generator(12);
  const exec_space exec;
  const auto offsets = bag_offsets(random, bags);
  const auto ids = indices<std::int32_t>(random, offsets.back(), rows);
  const auto values = uneven_values<float>(random, rows * width);
  const auto weights = uneven_values<float>(random, ids.size());
  const auto table = make<ferry::pinned_space>("table", rows, width, values);
  const auto index = make<TestType>("indices", ids);
  const auto begins = make<TestType>("offsets", as_offsets<std::int32_t>(offsets));
  const auto scale = make<TestType>("weights", weights);
  ferry::tensor<float, ferry::device_space> out("pooled", bags, width);
  const auto sums = pooled<float, float>(values, width, as_rows(ids), offsets, "pooling::sum", weights);
  ferry::gather_bags(exec, table, index, begins, out, scale, ferry::pooling::sum{}).wait();
  CHECK(same_bits(take(out), sums.rows));
  put(out, std::vector<float>(bags * width, 77.0F));
  ferry::gather_bags(exec, table, index, begins, out, scale, ferry::pooling::sum{}, ferry::path::staged{})
      .wait();
  CHECK(same_bits(take(out), sums.rows));
}

TEMPLATE_LIST_TEST_CASE("Bags of 8-bit rows are pooled as their values in float are", "",
                        ferry_test::types_of<decltype(ferry_test::spaces)>) {
  auto random = generator(13);
  const exec_space exec;
  for (const std::size_t wide : {1UL, 5UL, 16UL, 36UL, 128UL, 131UL}) {
    CAPTURE(wide);
    const auto offsets = bag_offsets(random, bags);
    const auto ids = indices<std::int64_t>(random, offsets.back(), rows);
    const auto records = records_of(uneven_rows<float>(random, rows, wide), wide);
    ferry::rowwise_int8_tensor<TestType> table("codes", rows, wide);
    put(table.records(), records);
    const auto decoded = as<float>(values_of(records, wide));
    ferry::tensor<float, ferry::device_space> out("pooled", bags, wide);
    const auto check = [&](auto pooling, auto path) {
      put(out, std::vector<float>(bags * wide, 77.0F));
      ferry::gather_bags(exec, table, ids, offsets, out, pooling, path).wait();
      CHECK(same_bits(take(out),
                      pooled<float, float>(decoded, wide, as_rows(ids), offsets, pooling.name).rows));
    };
    check(ferry::pooling::sum{}, ferry::path::automatic{});
    check(ferry::pooling::max{}, ferry::path::automatic{});
    if constexpr (TestType::is_host_accessible) check(ferry::pooling::mean{}, ferry::path::staged{});
  }
}

}  // namespace ferry_test::gather_bags_spaces_test
