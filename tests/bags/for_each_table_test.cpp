// SPDX-License-Identifier: Apache-2.0
#include "bags/table_kit.hpp"
#include "support/test.hpp"

#include <ferry/bags.hpp>

namespace ferry_test::for_each_table_test {

/// A batch, and its tables.
template <class T>
struct many_tables : table_batch<T> {
  using table_batch<T>::batch, table_batch<T>::width, table_batch<T>::widths, table_batch<T>::values;
  std::vector<ferry::tensor<T, ferry::device_space>> tables;

  many_tables(std::mt19937_64& random, const std::vector<std::size_t>& table_widths, std::size_t bags)
      : table_batch<T>(random, table_widths, bags) {
    for (std::size_t t = 0; t < widths.size(); ++t)
      tables.push_back(make<ferry::device_space>("table", this->rows[t], widths[t], values[t]));
  }
  /// Rows of all tables side by side, each pooled by itself.
  template <class... Weights>
  [[nodiscard]] std::vector<T> expected(std::string_view how, const Weights&... weights) const {
    std::vector<T> rows_of_bags(batch * width);
    for (std::size_t t = 0; t < widths.size(); ++t) {
      const auto first = this->offsets.begin() + static_cast<std::ptrdiff_t>(t * batch);
      const std::vector<std::size_t> table_offsets(first, first + static_cast<std::ptrdiff_t>(batch + 1));
      const auto pooled_rows =
          pooled<float, T>(values[t], widths[t], this->ids, table_offsets, how, weights...).rows;
      for (std::size_t b = 0; b < batch; ++b)
        std::copy_n(pooled_rows.begin() + static_cast<std::ptrdiff_t>(b * widths[t]), widths[t],
                    rows_of_bags.begin() + static_cast<std::ptrdiff_t>(b * width + this->column(t)));
    }
    return rows_of_bags;
  }
};

TEST_CASE("Bags of many tables are pooled in one launch, side by side") {
  auto random = generator(71);
  const exec_space exec;
  for (const auto& widths : {std::vector<std::size_t>{8}, std::vector<std::size_t>{4, 128, 16, 64},
                             std::vector<std::size_t>{1, 3, 17, 2, 40, 129}}) {
    const many_tables<float> input(random, widths, 19);
    ferry::tensor<float, ferry::device_space> out("pooled", input.batch, input.width);
    const auto check = [&](const std::vector<float>& expected, const auto&... more) {
      put(out, std::vector<float>(out.size(), 77.0F));
      ferry::gather_bags(exec, ferry::for_each_table(input.tables), input.ids, input.offsets, out, more...)
          .wait();
      CHECK(same_bits(take(out), expected));
    };
    check(input.expected("pooling::mean"));
    check(input.expected("pooling::sum"), ferry::pooling::sum{}, ferry::path::direct{});
    check(input.expected("pooling::max"), ferry::pooling::max{});
    check(input.expected("pooling::sum", input.weights), input.weights, ferry::pooling::sum{});
    auto open = input.offsets;
    open.pop_back();
    put(out, std::vector<float>(out.size(), 77.0F));
    ferry::gather_bags(exec, ferry::for_each_table(input.tables), input.ids, open, out).wait();
    CHECK(same_bits(take(out), input.expected("pooling::mean")));
  }
}

TEST_CASE("Tables may be listed one by one, of half rows, with a fixed number of positions") {
  auto random = generator(72);
  const exec_space exec;
  many_tables<ferry::half_t> input(random, {8, 12}, 6);
  for (std::size_t b = 0; b <= 12; ++b) input.offsets[b] = 3 * b;
  input.ids = indices<std::int64_t>(random, 36, 2);
  ferry::tensor<ferry::half_t, ferry::device_space> out("pooled", 6, 20);
  ferry::gather_bags(exec, ferry::for_each_table(input.tables[0], input.tables[1]), input.ids, 3, out).wait();
  CHECK(same_bits(take(out), input.expected("pooling::mean")));
}

TEST_CASE("A bad index of one table leaves its part of the row as it is") {
  auto random = generator(73);
  const exec_space exec;
  many_tables<float> input(random, {4, 7, 12}, 9);
  input.offsets.back() += 2;
  input.ids.insert(input.ids.end(), {0, 0});
  const auto good = input.expected("pooling::mean");
  auto bad = input.ids;
  bad.back() = static_cast<std::int64_t>(input.rows[2]);
  ferry::tensor<float, ferry::device_space> out("pooled", 9, 23);
  put(out, std::vector<float>(out.size(), 77.0F));
  CHECK_THROWS_MATCHES(
      ferry::gather_bags(exec, ferry::for_each_table(input.tables), bad, input.offsets, out).wait(),
      ferry::out_of_range,
      MessageMatches(ContainsSubstring("at position " + std::to_string(bad.size() - 1))));
  auto expected = good;
  std::fill_n(expected.end() - 12, 12, 77.0F);
  CHECK(same_bits(take(out), expected));
}

TEST_CASE("Messages about several tables name the table, its bag and the position") {
  const exec_space exec;
  std::vector<ferry::tensor<float, ferry::device_space>> tables;
  tables.emplace_back("users", 1000, 4);
  tables.emplace_back("items", 10, 3);
  tables.emplace_back("shops", 500, 5);
  for (auto& table : tables) ferry::init::zeros(exec, table);
  ferry::tensor<float, ferry::device_space> out("pooled", 2, 12);
  const auto said_for = [&](const auto& indices, const auto& offsets, const auto&... more) {
    return said<ferry::out_of_range>([&] {
      ferry::gather_bags(exec, ferry::for_each_table(tables), indices, offsets, out, ferry::pooling::sum{},
                         more...)
          .wait();
    });
  };
  const std::vector<std::int64_t> offsets{0, 1, 2, 3, 4, 5, 6}, good{999, 5, 3, 9, 499, 7};
  const auto check = [](auto list, std::size_t place, auto value) {
    list[place] = static_cast<typename decltype(list)::value_type>(value);
    return list;
  };
  // Each place in turn, by offsets and by a number of positions.
  const char* const names[] = {"'users' [1000 x 4]", "'items' [10 x 3]", "'shops' [500 x 5]"};
  for (std::size_t p = 0; p < good.size(); ++p) {
    const auto bad = check(good, p, 12345);
    const auto place_text = "index 12345 at position " + std::to_string(p) + ", in bag " +
                            std::to_string(p % 2) + " of " + names[p / 2];
    CHECK_THAT(said_for(bad, offsets), ContainsSubstring("1 of 6 indices") && ContainsSubstring(place_text));
    CHECK_THAT(said_for(bad, 1), ContainsSubstring(place_text));
    const std::vector<float> weights(6, 1.0F);
    CHECK_THAT(said<ferry::out_of_range>([&] {
                 ferry::gather_bags(exec, ferry::for_each_table(tables), bad, offsets, out, weights,
                                    ferry::pooling::sum{})
                     .wait();
               }),
               ContainsSubstring(place_text));
  }
  // The lowest position of several, bags of several positions, and a table whose bags are empty.
  CHECK_THAT(said_for(check(check(good, 3, -7), 4, 500), offsets),
             ContainsSubstring("2 of 6 indices") && ContainsSubstring("index -7 at position 3") &&
                 ContainsSubstring("'items'"));
  CHECK_THAT(said_for(check(good, 5, 600), std::vector<int>{0, 2, 4, 4, 4, 5, 6}),
             ContainsSubstring("index 600 at position 5, in bag 1 of 'shops' [500 x 5]"));

  // Offsets: where a bag of each table begins, and where the last one ends.
  for (std::size_t p = 0; p < offsets.size(); ++p) {
    const auto text = said_for(good, check(offsets, p, -3));
    const std::size_t bag = p < 6 ? p : 5;
    CHECK_THAT(text, ContainsSubstring("offsets[" + std::to_string(p) + "] = -3, where bag " +
                                       std::to_string(bag % 2) + " of " + names[bag / 2]));
    CHECK_THAT(text, ContainsSubstring(p < 6 ? " begins" : " ends"));
  }
  const std::vector<std::uint64_t> large{0, 1, 2, 3, ~std::uint64_t{0} - 1, 5, 6};
  CHECK_THAT(said_for(good, large), ContainsSubstring("offsets[4] = 18446744073709551614, where bag 0 of"));
}

TEST_CASE("Arguments of many tables that do not fit are refused") {
  const exec_space exec;
  using space = ferry::pinned_space;
  using rows = Kokkos::View<float**, Kokkos::LayoutRight, ferry::detail::kokkos_space_t<space>>;
  const rows array("array", 2, 12), users("users", 10, 4);
  std::fill_n(array.data(), 24, 1.0F);
  const auto items = Kokkos::subview(array, Kokkos::ALL, std::pair<std::size_t, std::size_t>(4, 12));
  const std::vector<int> ids{1, 2, 1, 0};
  const auto refused = [&](const auto& offsets, auto&& out) {
    const auto text = said<ferry::invalid_argument>(
        [&] { ferry::gather_bags(exec, ferry::for_each_table(users, items), ids, offsets, out).wait(); });
    CHECK(std::count(array.data(), array.data() + 24, 1.0F) == 24);
    return text;
  };
  ferry::tensor<float, space> pooled("pooled", 2, 12);
  CHECK_THAT(refused(1, array), ContainsSubstring("'array' [2 x 12]") &&
                                    ContainsSubstring("'array' [2 x 8]") &&
                                    ContainsSubstring("overlap in memory"));
  CHECK_THAT(refused(2, pooled), ContainsSubstring("4 indices were given for the 4 bags of 2 positions of 2 "
                                                   "tables and 'pooled' [2 x 12]"));
  CHECK_THAT(refused(std::vector<int>{0, 1}, pooled),
             ContainsSubstring("2 offsets were given for the 4 bags of 2 tables and 'pooled' [2 x 12]"));
}

TEST_CASE("A table without rows may have empty bags under bounds::clamp") {
  auto random = generator(74);
  const exec_space exec;
  std::vector<ferry::tensor<float, ferry::device_space>> tables;
  const auto values = uneven_values<float>(random, 20);
  tables.push_back(make<ferry::device_space>("full", 5, 4, values));
  tables.emplace_back("empty", 0, 8);
  ferry::tensor<float, ferry::device_space> out("pooled", 2, 12);
  const auto pool = [&](const std::vector<std::int64_t>& indices, const auto& offsets, auto how) {
    put(out, std::vector<float>(out.size(), 77.0F));
    ferry::gather_bags(exec, ferry::for_each_table(tables), indices, offsets, out, how,
                       ferry::bounds::clamp{})
        .wait();
  };
  std::vector<float> expected(24, 0.0F);
  std::copy_n(values.begin() + 16, 4, expected.begin());
  std::copy_n(values.begin(), 4, expected.begin() + 12);
  pool({9, -2}, std::vector<int>{0, 1, 2, 2, 2}, ferry::pooling::sum{});
  CHECK(same_bits(take(out), expected));
  pool({9, -2}, std::vector<int>{0, 1, 2, 2}, ferry::pooling::mean{});
  CHECK(same_bits(take(out), expected));
  // An index in a bag of the empty table has no row: the bag's part of the row keeps its contents.
  CHECK_THAT(said<ferry::out_of_range>([&] {
               pool({9, -2, 3}, std::vector<int>{0, 1, 2, 2, 3}, ferry::pooling::sum{});
             }),
             ContainsSubstring("index 3 at position 2, in bag 1 of 'empty' [0 x 8]"));
  std::fill_n(expected.begin() + 16, 8, 77.0F);
  CHECK(same_bits(take(out), expected));
}

}  // namespace ferry_test::for_each_table_test
