// SPDX-License-Identifier: Apache-2.0
#include "bags/bags.hpp"

#include <ferry/bags.hpp>

namespace ferry_test::gather_bags_bounds_test {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

constexpr std::size_t rows = 50, bags = 40, width = 12;

struct batch {
  std::vector<std::size_t> offsets;
  std::vector<std::int64_t> ids;
  std::vector<float> values;
  ferry::tensor<float, ferry::device_space> table, out;

  explicit batch(std::uint64_t salt) {
    auto random = generator(salt);
    offsets = bag_offsets(random, bags);
    offsets.back() += 5;  // at least some positions
    ids = indices<std::int64_t>(random, offsets.back(), rows);
    values = uneven_values<float>(random, rows * width);
    table = make<ferry::device_space>("table", rows, width, values);
    out = ferry::tensor<float, ferry::device_space>("pooled", bags, width);
    poison();
  }
  void poison() { put(out, std::vector<float>(bags * width, 77.0F)); }

  /// Every few positions another index outside of the table.
  [[nodiscard]] std::vector<std::int64_t> spoilt() const {
    auto flawed = ids;
    for (std::size_t p = 0; p < flawed.size(); p += 37)
      flawed[p] = p % 2 == 0 ? -1 - static_cast<std::int64_t>(p) : static_cast<std::int64_t>(rows + p);
    return flawed;
  }
};

TEST_CASE("bounds::check names the first bad index, and its bags keep their contents") {
  const exec_space exec;
  batch input(21);
  auto bad = input.ids;
  const std::size_t last = bad.size() - 1, first = bad.size() / 2;
  bad[last] = 1000;
  bad[first] = -9;
  const auto text = "2 of " + std::to_string(bad.size()) + " indices are outside of 'table'";
  CHECK_THROWS_MATCHES(
      ferry::gather_bags(exec, input.table, bad, input.offsets, input.out, ferry::pooling::sum{}).wait(),
      ferry::out_of_range,
      MessageMatches(ContainsSubstring("ferry::gather_bags: ") && ContainsSubstring(text) &&
                     ContainsSubstring("index -9 at position " + std::to_string(first))));
  auto expected =
      pooled<float, float>(input.values, width, as_rows(input.ids), input.offsets, "pooling::sum").rows;
  for (std::size_t b = 0; b < bags; ++b)
    for (const std::size_t position : {first, last})
      if (input.offsets[b] <= position && position < input.offsets[b + 1])
        std::fill_n(expected.begin() + b * width, width, 77.0F);
  CHECK(same_bits(take(input.out), expected));

  // A plan reports what its making found.
  const auto plan = ferry::make_plan(exec, bad, rows);
  input.poison();
  CHECK_THROWS_AS(
      ferry::gather_bags(exec, input.table, plan, input.offsets, input.out, ferry::pooling::sum{}).wait(),
      ferry::out_of_range);
  CHECK(same_bits(take(input.out), expected));
}

TEST_CASE("bounds::skip leaves positions out, bounds::clamp moves them to the ends") {
  const exec_space exec;
  batch input(22);
  const auto bad = input.spoilt();
  std::vector<std::int64_t> skipped, clamped;
  for (const auto index : bad) {
    skipped.push_back(row_of(index, rows, on_bad::leave));
    clamped.push_back(row_of(index, rows, on_bad::clamp));
  }
  const auto check = [&](auto pooling, auto policy, const std::vector<std::int64_t>& named) {
    CAPTURE(pooling.name, policy.name);
    const auto expected = pooled<float, float>(input.values, width, named, input.offsets, pooling.name).rows;
    input.poison();
    ferry::gather_bags(exec, input.table, bad, input.offsets, input.out, pooling, policy).wait();
    CHECK(same_bits(take(input.out), expected));
    input.poison();
    ferry::gather_bags(exec, input.table, ferry::make_plan(exec, bad, rows, policy), input.offsets, input.out,
                       pooling)
        .wait();
    CHECK(same_bits(take(input.out), expected));
  };
  check(ferry::pooling::sum{}, ferry::bounds::skip{}, skipped);
  check(ferry::pooling::mean{}, ferry::bounds::skip{}, skipped);
  check(ferry::pooling::max{}, ferry::bounds::skip{}, skipped);
  check(ferry::pooling::mean{}, ferry::bounds::clamp{}, clamped);

  input.poison();
  ferry::gather_bags(exec, input.table, input.ids, input.offsets, input.out, ferry::bounds::unchecked{})
      .wait();
  CHECK(same_bits(
      take(input.out),
      pooled<float, float>(input.values, width, as_rows(input.ids), input.offsets, "pooling::mean").rows));
}

TEST_CASE("Bad offsets are reported by their place, and their bags keep their contents") {
  const exec_space exec;
  batch input(23);
  const auto good =
      pooled<float, float>(input.values, width, as_rows(input.ids), input.offsets, "pooling::mean").rows;
  const auto check = [&](std::size_t place, std::int64_t value, std::size_t reported, auto policy) {
    CAPTURE(place, value, policy.name);
    auto offsets = as_offsets<std::int64_t>(input.offsets);
    offsets[place] = value;
    input.poison();
    CHECK_THROWS_MATCHES(
        ferry::gather_bags(exec, input.table, input.ids, offsets, input.out, policy).wait(),
        ferry::out_of_range,
        MessageMatches(ContainsSubstring("ferry::gather_bags: the offsets of ") &&
                       ContainsSubstring("offsets[" + std::to_string(reported) +
                                         "] = " + std::to_string(offsets[reported]) +
                                         (value < 0 ? ", which is negative" : ", which exceeds the "))));
    const auto result = take(input.out);
    for (std::size_t b = 0; b < bags; ++b) {
      if (b == place || b + 1 == place) continue;  // such a bag may still be a good one
      CAPTURE(b);
      CHECK(same_bits(std::vector<float>(result.begin() + b * width, result.begin() + (b + 1) * width),
                      std::vector<float>(good.begin() + b * width, good.begin() + (b + 1) * width)));
    }
  };
  const auto beyond = static_cast<std::int64_t>(input.ids.size()) + 1;
  check(7, -1, 7, ferry::bounds::check{});
  check(7, beyond, 7, ferry::bounds::check{});
  check(0, -5, 0, ferry::bounds::skip{});
  check(bags, beyond, bags, ferry::bounds::clamp{});
  check(bags, -1, bags, ferry::bounds::check{});
  check(3, std::numeric_limits<std::int64_t>::min(), 3, ferry::bounds::check{});
  check(3, std::numeric_limits<std::int64_t>::max(), 3, ferry::bounds::check{});

  // Unsigned offsets stay unsigned in messages.
  auto large = as_offsets<std::uint64_t>(input.offsets);
  large[7] = ~std::uint64_t{0} - 1;
  CHECK_THROWS_MATCHES(ferry::gather_bags(exec, input.table, input.ids, large, input.out).wait(),
                       ferry::out_of_range,
                       MessageMatches(ContainsSubstring("offsets[7] = 18446744073709551614")));

  // Offsets that decrease inside of the batch.
  const std::vector<std::int64_t> ids{1, 2, 3, 4};
  const std::vector<std::int32_t> offsets{0, 3, 1, 4};
  ferry::tensor<float, ferry::device_space> out("pooled", 3, width);
  put(out, std::vector<float>(3 * width, 77.0F));
  CHECK_THROWS_MATCHES(
      ferry::gather_bags(exec, input.table, ids, offsets, out).wait(), ferry::out_of_range,
      MessageMatches(ContainsSubstring("the offsets of 1 bag for rows of 'table'") &&
                     ContainsSubstring("offsets[2] = 1, which is less than offsets[1] = 3")));
  const auto result = take(out);
  for (std::size_t c = 0; c < width; ++c) CHECK(result[width + c] == 77.0F);
  CHECK(result[0] != 77.0F);
  CHECK(result[2 * width] != 77.0F);

  // Also where rows have no elements.
  const ferry::tensor<float, ferry::device_space> flat("flat", rows, 0);
  ferry::tensor<float, ferry::device_space> thin("pooled", 3, 0);
  CHECK_THROWS_AS(ferry::gather_bags(exec, flat, ids, offsets, thin).wait(), ferry::out_of_range);
}

TEST_CASE("Positions outside of all bags are not read") {
  const exec_space exec;
  batch input(24);
  const std::vector<std::int64_t> ids{-100, 3, 4, 5, 1000};
  const std::vector<std::int32_t> offsets{1, 2, 4};
  ferry::tensor<float, ferry::device_space> out("pooled", 2, width);
  ferry::gather_bags(exec, input.table, ids, offsets, out, ferry::pooling::sum{}).wait();
  CHECK(same_bits(take(out), pooled<float, float>(input.values, width, ids, {1, 2, 4}, "pooling::sum").rows));
}

TEST_CASE("Arguments of bags that do not fit are refused before anything is written") {
  const exec_space exec;
  batch input(25);
  const auto refuses = [&](const auto& ids, const auto& offsets, auto& out, const std::string& text) {
    CHECK_THROWS_MATCHES(ferry::gather_bags(exec, input.table, ids, offsets, out).wait(),
                         ferry::invalid_argument, MessageMatches(ContainsSubstring(text)));
  };
  const std::vector<int> ids{1, 2, 3};
  ferry::tensor<float, ferry::device_space> two("pooled", 2, width), narrow("pooled", 2, width - 1),
      none("pooled", 0, width);
  refuses(ids, std::vector<int>{0}, two, "1 offset was given for the 2 bags");
  refuses(ids, std::vector<int>{0, 1, 2, 3}, two, "4 offsets");
  refuses(ids, 2, two, "3 indices were given for the 2 bags of 2 positions");
  refuses(std::vector<int>{1}, 2, two, "1 index was given for the 2 bags of 2 positions");
  refuses(ids, -1, two, "bags of -1 positions");
  refuses(ids, std::vector<int>{}, none, "has no bags");
  const ferry::tensor<int, ferry::pageable_space> table_of_offsets("ends", 2, 1);
  refuses(ids, table_of_offsets, two, "the offsets 'ends' [2 x 1]");
  refuses(ids, std::vector<int>{0, 1, 3}, narrow, "11");
  refuses(ferry::make_plan(exec, ids, rows + 1), std::vector<int>{0, 1, 3}, two, "51 rows");
  CHECK_THROWS_MATCHES(
      ferry::gather_bags(exec, input.table, ids, std::vector<int>{0, 1, 3}, two, std::vector<float>{1.0F})
          .wait(),
      ferry::invalid_argument, MessageMatches(ContainsSubstring("1 weights for 3 indices")));
  ferry::tensor<int, ferry::device_space> maxima("maxima", 2, width + 1);
  CHECK_THROWS_AS(ferry::gather_bags(exec, input.table, ids, std::vector<int>{0, 1, 3}, two, maxima,
                                     ferry::pooling::max{})
                      .wait(),
                  ferry::invalid_argument);
  auto slice = input.table.first(2);
  refuses(ids, std::vector<int>{0, 1, 3}, slice, "overlap");
}

}  // namespace ferry_test::gather_bags_bounds_test
