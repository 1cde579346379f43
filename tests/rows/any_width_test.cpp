// SPDX-License-Identifier: Apache-2.0
#include "support/arrays.hpp"
#include "support/oracle.hpp"
#include "support/random.hpp"

#include <catch2/catch_template_test_macros.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

/// Rows of random widths that begin at any element, with guarded memory around: a device moves them in units that
/// hold parts of their neighbours, too.
namespace ferry_test::any_width_test {

namespace {

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

}  // namespace

TEMPLATE_TEST_CASE("rows of any width at any address", "[gather][scatter][width]", float, double,
                   ferry::half_t, ferry::bhalf_t, std::int8_t, std::int32_t) {
  auto random = generator(271);
  const exec_space exec;
  const int rounds = ferry::detail::is_host_exec<exec_space> ? 3 : 40;
  for (int round = 0; round < rounds; ++round) {
    check_rows<TestType, ferry::device_space>(random, exec);
    check_rows<TestType, ferry::mapped_space>(random, exec);
    check_rows<TestType, ferry::pinned_space>(random, exec);
  }
}

}  // namespace ferry_test::any_width_test
