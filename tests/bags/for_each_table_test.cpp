// SPDX-License-Identifier: Apache-2.0
#include "bags/bags.hpp"

#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

namespace ferry_test::for_each_table_test {

namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

/// Tables of several widths, with the bags of a batch for each.
template <class T>
struct many_tables {
  std::vector<std::size_t> widths, rows;
  std::size_t batch;
  std::vector<std::vector<T>> values;
  std::vector<ferry::tensor<T, ferry::device_space>> tables;
  std::vector<std::size_t> offsets;
  std::vector<std::int64_t> which;
  std::size_t width = 0;

  many_tables(std::mt19937_64& random, std::vector<std::size_t> widths_, std::size_t batch_)
      : widths(std::move(widths_)), batch(batch_), offsets(bag_offsets(random, widths.size() * batch_)) {
    for (std::size_t t = 0; t < widths.size(); ++t) {
      rows.push_back(5 + random() % 60);
      values.push_back(uneven_values<T>(random, rows[t] * widths[t]));
      tables.push_back(make<ferry::device_space>("table", rows[t], widths[t], values[t]));
      const auto own = indices<std::int64_t>(random, offsets[(t + 1) * batch] - offsets[t * batch], rows[t]);
      which.insert(which.end(), own.begin(), own.end());
      width += widths[t];
    }
  }
  /// Rows of all tables side by side, each pooled by itself.
  template <class... Weights>
  [[nodiscard]] std::vector<T> expected(std::string_view how, const Weights&... weights) const {
    std::vector<T> made(batch * width);
    std::size_t column = 0;
    for (std::size_t t = 0; t < widths.size(); ++t) {
      const std::vector<std::size_t> own(offsets.begin() + static_cast<std::ptrdiff_t>(t * batch),
                                         offsets.begin() + static_cast<std::ptrdiff_t>((t + 1) * batch + 1));
      const auto pooled_rows = pooled<float, T>(values[t], widths[t], which, own, how, weights...).rows;
      for (std::size_t b = 0; b < batch; ++b)
        std::copy_n(pooled_rows.begin() + static_cast<std::ptrdiff_t>(b * widths[t]), widths[t],
                    made.begin() + static_cast<std::ptrdiff_t>(b * width + column));
      column += widths[t];
    }
    return made;
  }
};

}  // namespace

TEST_CASE("Bags of many tables are pooled in one launch, side by side") {
  auto random = generator(71);
  const exec_space exec;
  for (const auto& widths : {std::vector<std::size_t>{8}, std::vector<std::size_t>{4, 128, 16, 64},
                             std::vector<std::size_t>{1, 3, 17, 2, 40, 129}}) {
    const many_tables<float> given(random, widths, 19);
    ferry::tensor<float, ferry::device_space> out("pooled", given.batch, given.width);
    const auto check = [&](const std::vector<float>& expected, const auto&... more) {
      put(out, std::vector<float>(out.size(), 77.0F));
      ferry::gather_bags(exec, ferry::for_each_table(given.tables), given.which, given.offsets, out, more...)
          .wait();
      CHECK(same_bits(take(out), expected));
    };
    check(given.expected("pooling::mean"));
    check(given.expected("pooling::sum"), ferry::pooling::sum{}, ferry::path::direct{});
    check(given.expected("pooling::max"), ferry::pooling::max{});
    const auto weights = uneven_values<float>(random, given.which.size());
    check(given.expected("pooling::sum", weights), weights, ferry::pooling::sum{});
    auto open = given.offsets;
    open.pop_back();
    put(out, std::vector<float>(out.size(), 77.0F));
    ferry::gather_bags(exec, ferry::for_each_table(given.tables), given.which, open, out).wait();
    CHECK(same_bits(take(out), given.expected("pooling::mean")));
  }
}

TEST_CASE("Tables may be listed one by one, of half rows, with a fixed number of positions") {
  auto random = generator(72);
  const exec_space exec;
  many_tables<ferry::half_t> given(random, {8, 12}, 6);
  for (std::size_t b = 0; b <= 12; ++b) given.offsets[b] = 3 * b;
  given.which = indices<std::int64_t>(random, 36, 5);
  ferry::tensor<ferry::half_t, ferry::device_space> out("pooled", 6, 20);
  ferry::gather_bags(exec, ferry::for_each_table(given.tables[0], given.tables[1]), given.which, 3, out)
      .wait();
  CHECK(same_bits(take(out), given.expected("pooling::mean")));
}

TEST_CASE("A bad index or offset of one table leaves its part of the row as it is") {
  auto random = generator(73);
  const exec_space exec;
  many_tables<float> given(random, {4, 7, 12}, 9);
  given.offsets.back() += 2;
  given.which.insert(given.which.end(), {0, 0});
  const auto good = given.expected("pooling::mean");
  auto bad = given.which;
  bad.back() = static_cast<std::int64_t>(given.rows[2]);
  ferry::tensor<float, ferry::device_space> out("pooled", 9, 23);
  put(out, std::vector<float>(out.size(), 77.0F));
  CHECK_THROWS_MATCHES(
      ferry::gather_bags(exec, ferry::for_each_table(given.tables), bad, given.offsets, out).wait(),
      ferry::out_of_range,
      MessageMatches(ContainsSubstring("at position " + std::to_string(bad.size() - 1))));
  auto expected = good;
  std::fill_n(expected.end() - 12, 12, 77.0F);
  CHECK(same_bits(take(out), expected));

  auto offsets = as_offsets<std::int64_t>(given.offsets);
  offsets[10] = -1;
  CHECK_THROWS_AS(
      ferry::gather_bags(exec, ferry::for_each_table(given.tables), given.which, offsets, out).wait(),
      ferry::out_of_range);
  ferry::tensor<float, ferry::device_space> narrow("pooled", 9, 22);
  CHECK_THROWS_AS(
      ferry::gather_bags(exec, ferry::for_each_table(given.tables), given.which, given.offsets, narrow)
          .wait(),
      ferry::invalid_argument);
  CHECK_THROWS_AS(
      ferry::gather_bags(exec, ferry::for_each_table(given.tables), given.which, std::vector<int>{0}, out)
          .wait(),
      ferry::invalid_argument);
}

}  // namespace ferry_test::for_each_table_test
