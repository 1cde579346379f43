// SPDX-License-Identifier: Apache-2.0
#include "support/matrix.hpp"
#include "support/oracle.hpp"
#include "support/test.hpp"

namespace ferry_test::any_width_test {

// Rows of random widths that begin at any element, with guarded memory around: a device moves them in units that
// hold parts of their neighbours, too.

/// An array within memory of its own: `shift` elements lie before it and some after it.
template <class T, class Space>
struct guarded {
  std::size_t rows, width, shift;
  std::vector<T> content;  ///< of all memory
  ferry::tensor<T, Space> memory;

  guarded(auto& random, std::size_t row_count, std::size_t row_width)
      : rows(row_count),
        width(row_width),
        shift(random() % 17),
        content(values<T>(random, shift + rows * width + random() % 9)),
        memory(make<Space>("memory", content)) {}

  auto view() { return ferry::tensor_view<T, Space>(memory.data() + shift, rows, width); }
  [[nodiscard]] std::vector<T> elements() const {
    const auto begin = content.begin() + static_cast<std::ptrdiff_t>(shift);
    return {begin, begin + static_cast<std::ptrdiff_t>(rows * width)};
  }
  /// The numbers of the memory if its array has these elements.
  [[nodiscard]] std::vector<double> numbers_with(const std::vector<double>& changed) const {
    std::vector<double> expected_numbers;
    for (const T& element : content) expected_numbers.push_back(number(element));
    std::copy(changed.begin(), changed.end(), expected_numbers.begin() + static_cast<std::ptrdiff_t>(shift));
    return expected_numbers;
  }
  /// The memory if its array has these elements.
  template <class U>
  [[nodiscard]] std::vector<T> with(const std::vector<U>& changed) const {
    auto expected_numbers = content;
    for (std::size_t e = 0; e < changed.size(); ++e)
      expected_numbers[shift + e] = ferry::convert<T>(changed[e]);
    return expected_numbers;
  }
};

/// The rows of a table that a gather returns.
template <class T>
std::vector<T> rows_of(const std::vector<T>& table, std::size_t width,
                       const std::vector<std::int64_t>& row_numbers) {
  std::vector<T> rows;
  for (const std::int64_t row : row_numbers) {
    const auto begin = table.begin() + static_cast<std::ptrdiff_t>(row) * static_cast<std::ptrdiff_t>(width);
    rows.insert(rows.end(), begin, begin + static_cast<std::ptrdiff_t>(width));
  }
  return rows;
}

template <class T, class Space>
void check_rows(auto& random, const exec_space& exec) {
  const std::size_t rows = 60 + random() % 60, n = 1 + random() % 50;
  const std::size_t width = random() % 4 == 0 ? 1 + random() % 12 : 1 + random() % 300;
  CAPTURE(Space::name, rows, width, n);
  const auto row_numbers = indices<std::int64_t>(random, n, rows);
  const auto distinct = unique_indices<std::int64_t>(random, n, rows);

  guarded<T, Space> table(random, rows, width);
  guarded<T, ferry::device_space> batch(random, n, width);
  const auto gathered = rows_of(table.elements(), width, row_numbers);
  ferry::gather(exec, table.view(), row_numbers, batch.view()).wait();
  CHECK(same_bits(take(batch.memory), batch.with(gathered)));
  guarded<T, ferry::device_space> planned(random, n, width);
  ferry::gather(exec, table.view(), ferry::make_plan(exec, row_numbers, rows), planned.view()).wait();
  CHECK(same_bits(take(planned.memory), planned.with(gathered)));
  guarded<double, ferry::device_space> converted(random, n, width);
  ferry::gather(exec, table.view(), row_numbers, converted.view()).wait();
  CHECK(same_bits(take(converted.memory), converted.with(gathered)));

  guarded<T, ferry::device_space> source(random, n, width);
  const auto last =
      scattered(table.elements(), width, row_numbers, source.elements(), false, "duplicates::last");
  const auto unique =
      scattered(table.elements(), width, distinct, source.elements(), false, "duplicates::last");
  const auto sums =
      scattered(table.elements(), width, row_numbers, source.elements(), true, "duplicates::sum");
  const auto changed = [&](const auto& call) {
    auto fresh = table.content;
    auto memory = make<Space>("memory", fresh);
    call(ferry::tensor_view<T, Space>(memory.data() + table.shift, rows, width));
    return take(memory);
  };
  const auto values_view = source.view();
  CHECK(same_bits(changed([&](auto view) { ferry::scatter(exec, view, row_numbers, values_view).wait(); }),
                  table.with(last)));
  CHECK(same_bits(changed([&](auto view) {
                    ferry::scatter(exec, view, ferry::make_plan(exec, row_numbers, rows), values_view).wait();
                  }),
                  table.with(last)));
  CHECK(same_bits(
      changed([&](auto view) {
        ferry::scatter(exec, view, distinct, values_view, ferry::duplicates::assume_unique{}).wait();
      }),
      table.with(unique)));
  if constexpr (sizeof(T) > 1) {
    CHECK(close(changed([&](auto view) { ferry::scatter_add(exec, view, row_numbers, values_view).wait(); }),
                table.numbers_with(sums)));
    CHECK(
        close(changed([&](auto view) {
                ferry::scatter_add(exec, view, ferry::make_plan(exec, row_numbers, rows), values_view).wait();
              }),
              table.numbers_with(sums)));
  }
}

// Units are chosen by the size of an element and the memory of the table: every space with elements of two sizes.
using elements_and_spaces = zipped<
    decltype(axis<float, ferry::half_t, std::int8_t, double, float, ferry::bhalf_t, std::int32_t, float>),
    decltype(axis<ferry::device_space, ferry::mapped_space, ferry::pinned_space>), 0>;
TEMPLATE_LIST_TEST_CASE("rows of any width at any address", "[gather][scatter][width]", elements_and_spaces) {
  auto random = generator(271);
  const exec_space exec;
  const int rounds = ferry::detail::is_host_exec<exec_space> ? 3 : 40;
  for (int round = 0; round < rounds; ++round) check_rows<at<0, TestType>, at<1, TestType>>(random, exec);
}

// Arrays of short rows in LayoutLeft, as a Kokkos program has them on a device: gather, scatter and scatter_add
// against plain loops.

using Kokkos::LayoutLeft;
using Kokkos::LayoutRight;

constexpr std::size_t rows = 211, n = 97, width = 3;

template <class T, class Layout>
using points = Kokkos::View<T* [width], Layout, Kokkos::SharedSpace>;

/// The elements of a view by row.
template <class View>
std::vector<double> content_of(const View& view) {
  Kokkos::fence();
  std::vector<double> content;
  for (std::size_t r = 0; r < view.extent(0); ++r)
    for (std::size_t c = 0; c < view.extent(1); ++c) content.push_back(static_cast<double>(view(r, c)));
  return content;
}

template <class View>
void fill(const View& view, std::mt19937_64& random) {
  for (std::size_t r = 0; r < view.extent(0); ++r)
    for (std::size_t c = 0; c < view.extent(1); ++c)
      view(r, c) =
          static_cast<typename View::non_const_value_type>(static_cast<double>(random() % 2000) - 1000);
}

template <class View>
void poison(const View& view) {
  for (std::size_t r = 0; r < view.extent(0); ++r)
    for (std::size_t c = 0; c < view.extent(1); ++c) view(r, c) = -12345;
}

/// The layouts of a table and its batch, and their elements.
template <class Table, class Batch>
struct pair_of {
  using table = Table;
  using batch = Batch;
};

TEMPLATE_TEST_CASE("verbs move short rows of LayoutLeft arrays by columns", "[columns]",
                   (pair_of<points<double, LayoutLeft>, points<double, LayoutLeft>>),
                   (pair_of<points<double, LayoutLeft>, points<double, LayoutRight>>),
                   (pair_of<points<float, LayoutRight>, points<double, LayoutLeft>>)) {
  const exec_space exec;
  auto random = generator(311);
  typename TestType::table table("table", rows);
  typename TestType::batch batch("batch", n);
  fill(table, random);
  for (const bool planned : {false, true}) {
    CAPTURE(planned);
    const auto ids = indices<std::int64_t>(random, n, rows);
    const auto plan = ferry::make_plan(exec, ids, rows);
    const auto before = content_of(table);
    poison(batch);
    if (planned)
      ferry::gather(exec, table, plan, batch).wait();
    else
      ferry::gather(exec, table, ids, batch).wait();
    const auto rows_of_ids = content_of(batch);
    for (std::size_t p = 0; p < n; ++p)
      for (std::size_t c = 0; c < width; ++c)
        REQUIRE(rows_of_ids[p * width + c] == before[static_cast<std::size_t>(ids[p]) * width + c]);

    fill(batch, random);
    const auto values = content_of(batch);
    const auto compare = [&](auto duplicates, auto adds) {
      const std::string_view how =
          duplicates.name == "duplicates::sum_any_order" ? "duplicates::sum" : duplicates.name;
      const auto expected = scattered(content_of(table), width, ids, values, adds, how);
      const auto write = [&](const auto& named) {
        if constexpr (adds)
          ferry::scatter_add(exec, table, named, batch, duplicates).wait();
        else
          ferry::scatter(exec, table, named, batch, duplicates).wait();
      };
      planned ? write(plan) : write(ids);
      CHECK(content_of(table) == expected);
    };
    compare(ferry::duplicates::last{}, std::false_type());
    compare(ferry::duplicates::first{}, std::false_type());
    compare(ferry::duplicates::sum{}, std::false_type());
    compare(ferry::duplicates::sum{}, std::true_type());
    compare(ferry::duplicates::sum_any_order{}, std::true_type());
  }
}

TEST_CASE("errors of verbs by columns name the whole table, and nothing is half written", "[columns]") {
  const exec_space exec;
  auto random = generator(312);
  points<double, LayoutLeft> table("table", rows), batch("batch", 4);
  fill(table, random);
  fill(batch, random);
  const auto before = content_of(table);
  const std::vector<std::int64_t> bad{5, 400, 7, -2}, twice{5, 6, 7, 5}, good{1, 2, 3, 4};
  const auto plan = ferry::make_plan(exec, bad, rows);
  for (const auto& text :
       {said<ferry::out_of_range>([&] { ferry::scatter(exec, table, bad, batch).wait(); }),
        said<ferry::out_of_range>([&] { ferry::scatter_add(exec, table, plan, batch).wait(); }),
        said<ferry::out_of_range>(
            [&] { ferry::scatter(exec, table, bad, batch, ferry::duplicates::assume_unique{}).wait(); })}) {
    CHECK(has(text, "2 of 4 indices are outside of 'table' [211 x 3]"));
    CHECK(has(text, "index 400 at position 1"));
  }
  CHECK(has(said<ferry::invalid_argument>(
                [&] { ferry::scatter(exec, table, twice, batch, ferry::duplicates::reject{}).wait(); }),
            "1 row of 'table' [211 x 3]"));
  CHECK(content_of(table) == before);
  ferry::scatter(exec, table, bad, batch, ferry::bounds::skip{}).wait();
  auto expected = before;
  const auto values = content_of(batch);
  for (const std::size_t p : {0u, 2u})
    for (std::size_t c = 0; c < width; ++c)
      expected[static_cast<std::size_t>(bad[p]) * width + c] = values[p * width + c];
  CHECK(content_of(table) == expected);

  poison(batch);
  CHECK(has(said<ferry::out_of_range>([&] { ferry::gather(exec, table, bad, batch).wait(); }),
            "2 of 4 indices are outside of 'table' [211 x 3]"));
  CHECK(batch(1, 2) == -12345);
  CHECK(batch(2, 2) == table(7, 2));
  CHECK(has(said<ferry::invalid_argument>([&] {
              ferry::gather(exec, table, std::vector<std::int64_t>{1, 2}, batch).wait();
            }),
            "2 indices were given for the 4 rows of 'batch' [4 x 3]"));
  const auto part = Kokkos::subview(table, std::pair(0, 4), Kokkos::ALL);
  CHECK(
      has(said<ferry::invalid_argument>([&] { ferry::gather(exec, table, good, part).wait(); }), "overlap"));
  // A detached ticket reports once, for all columns.
  ferry::scatter(exec, table, bad, batch).detach();
  exec.fence();
  int heard = 0;
  for (int turn = 0; turn < 4; ++turn)
    heard +=
        said<ferry::out_of_range>([&] { ferry::gather(exec, table, good, batch).wait(); }).empty() ? 0 : 1;
  CHECK(heard == 1);
}

}  // namespace ferry_test::any_width_test
