// SPDX-License-Identifier: Apache-2.0
#include "../../src/io/marks_on.hpp"
#include "io/checkpoint_kit.hpp"

#include <ferry/bags.hpp>
#include <ferry/quantized.hpp>

#include <catch2/catch_template_test_macros.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

/// Which rows verbs mark, against the rows that a comparison of the memory before and after finds.
namespace ferry_test::changed_rows_test {

namespace {

namespace optim = ferry::optim;
using ferry::detail::changed_rows;
using rows_of = std::set<std::int64_t>;

constexpr std::size_t rows = 211, width = 5;

/// Marks of an array, from now on.
template <class Array>
std::shared_ptr<changed_rows> marks_of(Array&& array) {
  const auto ref = ferry::make_ref(array);
  const auto memory = ferry::detail::memory_of(ref);
  auto marks =
      std::make_shared<changed_rows>(memory, ferry::detail::device_marks_for<exec_space>(memory.rows));
  ref.accesses->keep_changes_in(marks);
  return marks;
}

/// The rows marked since the last call.
rows_of marked(changed_rows& marks) {
  rows_of set;
  const auto& words = marks.take();
  for (std::size_t i = 0; i < words.size(); ++i)
    if (words[i] != 0) set.insert(static_cast<std::int64_t>(i));
  marks.drop();
  CHECK(marks.is_trusted());
  return set;
}

template <class Index>
rows_of as_set(const std::vector<Index>& ids) {
  rows_of set;
  for (const Index id : ids) set.insert(static_cast<std::int64_t>(id));
  return set;
}
rows_of from_to(std::int64_t begin, std::int64_t end) {
  rows_of set;
  for (std::int64_t i = begin; i < end; ++i) set.insert(i);
  return set;
}

/// Different rows in random order.
template <class Index>
std::vector<Index> some_rows(std::mt19937_64& random, std::size_t count) {
  std::vector<Index> whole(rows);
  for (std::size_t i = 0; i < rows; ++i) whole[i] = static_cast<Index>(i);
  std::shuffle(whole.begin(), whole.end(), random);
  whole.resize(count);
  return whole;
}

template <class Space, class... Policies>
void check_scatter(std::mt19937_64& random, Policies... policies) {
  const exec_space exec;
  ferry::tensor<float, Space> table("table", rows, width);
  put(table, values<float>(random, rows * width));
  const auto marks = marks_of(table);
  const auto count = 1 + random() % 40;
  const auto batch = make<ferry::pinned_space>("batch", count, width, values<float>(random, count * width));
  const auto named = indices<std::int64_t>(random, count, rows);
  ferry::scatter(exec, table, named, batch, policies...).wait();
  CHECK(marked(*marks) == as_set(named));
  ferry::scatter_add(exec, table, named, batch, policies...).wait();
  CHECK(marked(*marks) == as_set(named));
  const auto plan = ferry::make_plan(exec, named, rows);
  ferry::scatter(exec, table, plan, batch, policies...).wait();
  CHECK(marked(*marks) == as_set(named));
  const auto first = some_rows<std::int32_t>(random, count);
  ferry::scatter(exec, table, first, batch, ferry::duplicates::assume_unique{}, policies...).wait();
  CHECK(marked(*marks) == as_set(first));
  ferry::tensor<float, ferry::pinned_space> out("out", count, width);
  ferry::gather(exec, table, named, out, policies...).wait();
  CHECK(marked(*marks).empty());
}

}  // namespace

TEMPLATE_TEST_CASE("verbs mark the rows that they write", "[io][checkpoint]", ferry::device_space,
                   ferry::pinned_space, ferry::mapped_space, ferry::pageable_space) {
  auto random = generator(501);
  for (int turn = 0; turn < 5; ++turn) {
    check_scatter<TestType>(random);
    check_scatter<TestType>(random, ferry::path::staged{});
    if constexpr (!std::is_same_v<TestType, ferry::pageable_space>) {
      check_scatter<TestType>(random, ferry::path::direct{});
      check_scatter<TestType>(random, ferry::path::ordered{});
    }
  }
}

TEMPLATE_TEST_CASE("every type of index marks, and bounds are kept", "[io][checkpoint]", std::int32_t,
                   std::uint32_t, std::int64_t, std::uint64_t) {
  using namespace ferry;
  const exec_space exec;
  auto random = generator(502);
  tensor<float, mapped_space> table("table", rows, width);
  init::zeros(exec, table);
  const auto marks = marks_of(table);
  const auto batch = make<device_space>("batch", 3, width, values<float>(random, 3 * width));
  const auto far = static_cast<TestType>(std::uint64_t{1} << (sizeof(TestType) * 8 - 2));
  const auto last = std::int64_t{rows} - 1;
  const std::vector<TestType> named{3, far, 9};
  const duplicates::assume_unique unique{};
  scatter(exec, table, named, batch, bounds::clamp{}, unique).wait();
  CHECK(marked(*marks) == rows_of{3, 9, last});
  scatter(exec, table, named, batch, bounds::clamp{}).wait();
  CHECK(marked(*marks) == rows_of{3, 9, last});
  scatter(exec, table, named, batch, bounds::skip{}).wait();
  CHECK(marked(*marks) == rows_of{3, 9});
  scatter(exec, table, named, batch, bounds::skip{}, path::staged{}, unique).wait();
  CHECK(marked(*marks) == rows_of{3, 9});
  // Rows may be marked that were not written, never the other way round.
  scatter(exec, table, named, batch, bounds::skip{}, path::direct{}, unique).wait();
  const auto rows_marked = marked(*marks);
  CHECK((rows_marked == rows_of{3, 9} || rows_marked == rows_of{3, 9, last}));
  const std::vector<TestType> wrapped{5, static_cast<TestType>(-1)};
  scatter(exec, table, wrapped, batch.first(2), bounds::clamp{}, unique).wait();
  CHECK(marked(*marks) == rows_of{5, std::is_signed_v<TestType> ? 0 : last});
  scatter(exec, table, std::vector<TestType>{}, batch.first(0)).wait();
  CHECK(marked(*marks).empty());
}

TEST_CASE("a step marks weights and state", "[io][checkpoint]") {
  const exec_space exec;
  auto random = generator(503);
  const optim::adam rule{.lr = 0.1};
  ferry::tensor<float, ferry::mapped_space> table("table", rows, width);
  ferry::init::zeros(exec, table);
  auto state = optim::make_state(rule, table);
  auto records = optim::make_records<float, ferry::mapped_space>(rule, "records", rows, width);
  const auto weights = marks_of(table), first = marks_of(state.field("exp_avg")),
             second = marks_of(state.field("exp_avg_sq"));
  const auto in_record = marks_of(records.table()), field = marks_of(records.field("exp_avg_sq"));
  for (int turn = 0; turn < 10; ++turn) {
    const auto count = 1 + random() % 30;
    const auto named = indices<std::int32_t>(random, count, rows);
    const auto grads = make<ferry::device_space>("grads", count, width, values<float>(random, count * width));
    const auto pooled = make<ferry::device_space>("pooled", 2, width, values<float>(random, 2 * width));
    ferry::step(exec, rule, table, state, named, grads).wait();
    for (const auto& marks : {weights, first, second}) CHECK(marked(*marks) == as_set(named));
    ferry::step(exec, rule, records, named, grads).wait();
    for (const auto& marks : {in_record, field}) CHECK(marked(*marks) == as_set(named));
    // A verb on the weights leaves the state in the same records alone.
    ferry::scatter(exec, records.table(), named, grads).wait();
    CHECK(marked(*in_record) == as_set(named));
    CHECK(marked(*field).empty());
    const std::vector<std::int64_t> bags{0, static_cast<std::int64_t>(count) / 2,
                                         static_cast<std::int64_t>(count)};
    ferry::step_bags(exec, rule, table, state, named, bags, pooled, ferry::pooling::mean{}).wait();
    for (const auto& marks : {weights, first, second}) CHECK(marked(*marks) == as_set(named));
  }
}

TEST_CASE("a step of many tables marks the rows of each", "[io][checkpoint]") {
  const exec_space exec;
  auto random = generator(507);
  const optim::adam rule{.lr = 0.1};
  std::vector<ferry::tensor<float, ferry::mapped_space>> tables;
  std::vector<decltype(optim::make_state(rule, tables.front()))> states;
  std::vector<std::shared_ptr<changed_rows>> weights, fields;
  for (std::size_t t = 0; t < 3; ++t) {
    tables.emplace_back("table", rows - 40 * t, width);
    ferry::init::zeros(exec, tables[t]);
    states.push_back(optim::make_state(rule, tables[t]));
    weights.push_back(marks_of(tables[t]));
    fields.push_back(marks_of(states[t].field("exp_avg")));
  }
  for (int turn = 0; turn < 10; ++turn) {
    std::vector<std::vector<std::int64_t>> named;
    std::vector<std::int64_t> ids, bags{0};
    for (std::size_t t = 0; t < 3; ++t) {
      named.push_back(
          indices<std::int64_t>(random, turn == 3 && t == 1 ? 0 : 1 + random() % 30, tables[t].rows()));
      ids.insert(ids.end(), named[t].begin(), named[t].end());
      bags.push_back(static_cast<std::int64_t>(ids.size()));
    }
    const auto pooled = make<ferry::device_space>("pooled", 1, 3 * width, values<float>(random, 3 * width));
    ferry::step_bags(exec, rule, ferry::for_each_table(tables), states, ids, bags, pooled).wait();
    for (std::size_t t = 0; t < 3; ++t) {
      CHECK(marked(*weights[t]) == as_set(named[t]));
      CHECK(marked(*fields[t]) == as_set(named[t]));
    }
  }
}

TEST_CASE("a step on 4-bit codes marks no neighbours", "[io][checkpoint]") {
  const exec_space exec;
  auto random = generator(508);
  const optim::sgd rule{.lr = 0.1};
  ferry::quantized_tensor<ferry::quantization::mxfp4, ferry::mapped_space> table("table", 40, 32);
  ferry::quantize(exec, make<ferry::mapped_space>("numbers", 40, 32, values<float>(random, 40 * 32)), table)
      .wait();
  auto state = optim::make_state(rule, table);
  const auto codes = marks_of(table.codes()), scales = marks_of(table.scales());
  for (int turn = 0; turn < 5; ++turn) {
    const auto named = indices<std::int64_t>(random, 1 + random() % 6, 40);
    const auto grads =
        make<ferry::device_space>("grads", named.size(), 32, values<float>(random, named.size() * 32));
    ferry::step(exec, rule, table, state, named, grads).wait();
    for (const auto& marks : {codes, scales}) CHECK(marked(*marks) == as_set(named));
  }
}

TEST_CASE("the rows of a table are a part of a plan's list", "[io][checkpoint]") {
  auto random = generator(509);
  for (int turn = 0; turn < 50; ++turn) {
    // Numbers beyond the valid ones are no rows.
    rows_of set;
    for (std::size_t i = random() % 60; i > 0; --i) set.insert(static_cast<std::int64_t>(random() % 100));
    std::vector<std::int64_t> list(set.begin(), set.end());
    const auto valid = static_cast<std::int64_t>(list.size());
    for (int i = 0; i < 9; ++i) list.push_back(static_cast<std::int64_t>(random() % 100));
    std::vector<std::int64_t> first{0, 100};
    for (int t = 0; t < 4; ++t) first.push_back(static_cast<std::int64_t>(random() % 100));
    std::sort(first.begin(), first.end());
    std::size_t listed = 0;
    for (std::size_t t = 0; t + 1 < first.size(); ++t) {
      const std::int64_t table_rows = first[t + 1] - first[t];
      const ferry::detail::listed_numbers part{.list = list.data(),
                                               .count = static_cast<std::int64_t>(list.size()),
                                               .valid_count = &valid,
                                               .ascends = true,
                                               .rows = table_rows,
                                               .first = first[t]};
      rows_of expected;
      for (const auto number : set)
        if (number >= first[t] && number < first[t + 1]) expected.insert(number - first[t]);
      CHECK(part.end() - part.begin() == static_cast<std::int64_t>(expected.size()));
      CHECK(part.most() == std::min(part.count, table_rows));
      listed += expected.size();
      changed_rows by_host({reinterpret_cast<const std::byte*>(list.data()), table_rows, 4, 4}, nullptr);
      by_host.mark(part, {0, 0});
      CHECK(marked(by_host) == expected);
      std::vector<unsigned char> marks(static_cast<std::size_t>(table_rows) + 1);
      const ferry::kernels::mark_listed_rows kernel{marks.data(), table_rows, part, {0, 0}};
      for (std::int64_t i = 0; i < part.most(); ++i) kernel(i);
      rows_of by_kernel;
      for (std::size_t i = 0; i < marks.size(); ++i)
        if (marks[i] != 0) by_kernel.insert(static_cast<std::int64_t>(i));
      CHECK(by_kernel == expected);
    }
    CHECK(listed == set.size());
  }
}

TEST_CASE("slices mark the rows of their tensor, and whole writes all of them", "[io][checkpoint]") {
  const exec_space exec;
  auto random = generator(504);
  ferry::tensor<double, ferry::mapped_space> table("table", rows, width);
  ferry::init::zeros(exec, table);
  const auto table_marks = marks_of(table);
  auto middle = table.rows_between(50, 120);
  const auto part = marks_of(middle);
  for (int turn = 0; turn < 10; ++turn) {
    const auto begin = random() % 150, end = begin + 1 + random() % 50;
    auto slice = table.rows_between(begin, end);
    const auto count = 1 + random() % 20;
    const auto named = indices<std::int64_t>(random, count, end - begin);
    const auto batch =
        make<ferry::device_space>("batch", count, width, values<double>(random, count * width));
    ferry::scatter(exec, slice, named, batch).wait();
    rows_of expected, expected_part;
    for (const auto row : named) expected.insert(row + static_cast<std::int64_t>(begin));
    for (const auto row : expected)
      if (row >= 50 && row < 120) expected_part.insert(row - 50);
    CHECK(marked(*table_marks) == expected);
    CHECK(marked(*part) == expected_part);

    const auto first = static_cast<std::int64_t>(begin), last = static_cast<std::int64_t>(end);
    rows_of clipped;
    for (auto i = std::max<std::int64_t>(first, 50); i < std::min<std::int64_t>(last, 120); ++i)
      clipped.insert(i - 50);
    ferry::init::constant(exec, slice, 3.0);
    CHECK(marked(*table_marks) == from_to(first, last));
    CHECK(marked(*part) == clipped);
    const auto source = make<ferry::pageable_space>("source", end - begin, width,
                                                    values<double>(random, (end - begin) * width));
    ferry::copy(exec, source, slice).wait();
    CHECK(marked(*table_marks) == from_to(first, last));
    CHECK(marked(*part) == clipped);
    ferry::gather(exec, source, std::vector<std::int64_t>{0}, table.rows_between(begin, begin + 1)).wait();
    CHECK(marked(*table_marks) == rows_of{first});
    CHECK(marked(*part) == (first >= 50 && first < 120 ? rows_of{first - 50} : rows_of{}));
  }
}

TEST_CASE("marks survive a verb that throws in its wait, and those who keep them may go",
          "[io][checkpoint]") {
  const exec_space exec;
  ferry::tensor<float, ferry::device_space> table("table", rows, width);
  ferry::init::zeros(exec, table);
  const ferry::tensor<float, ferry::device_space> batch("batch", 2, width);
  auto marks = marks_of(table);
  auto second = marks_of(table);
  CHECK_THROWS_AS(ferry::scatter(exec, table, std::vector<int>{4, 5000}, batch).wait(), ferry::out_of_range);
  ferry::scatter(exec, table, std::vector<int>{7, 8}, batch).wait();
  const auto rows_marked = marked(*marks);
  CHECK(rows_marked.contains(7));
  CHECK(rows_marked.contains(8));
  second = nullptr;
  ferry::scatter(exec, table, std::vector<int>{1, 2}, batch).wait();
  CHECK(marked(*marks) == rows_of{1, 2});
  marks = nullptr;
  ferry::scatter(exec, table, std::vector<int>{1, 2}, batch).wait();
  CHECK(table.accesses()->marks().empty());
}

/// A policy of the user's: rows are counted around.
struct around {
  using policy_category = ferry::bounds_category;
  static constexpr std::string_view name = "around";
  static constexpr bool reports = false;
  template <class Index>
  KOKKOS_FUNCTION static std::int64_t resolve(Index index, std::int64_t table_rows) {
    const auto rest = static_cast<std::int64_t>(index) % table_rows;
    return rest < 0 ? rest + table_rows : rest;
  }
};
static_assert(ferry::BoundsPolicy<around>);

TEST_CASE("rows that a user's bounds policy resolves are marked", "[io][checkpoint]") {
  const exec_space exec;
  ferry::tensor<float, ferry::device_space> table("table", rows, width);
  ferry::init::zeros(exec, table);
  const ferry::tensor<float, ferry::device_space> batch("batch", 2, width);
  const auto marks = marks_of(table);
  const std::vector<std::int64_t> ids{1000, -7};
  const auto holds_both = [](const rows_of& rows_marked) {
    return rows_marked.contains(around::resolve(1000, rows)) &&
           rows_marked.contains(around::resolve(-7, rows));
  };
  ferry::scatter(exec, table, ids, batch, around{}, ferry::duplicates::assume_unique{}).wait();
  CHECK(holds_both(marked(*marks)));
  ferry::scatter_add(exec, table, ids, batch, around{}).wait();
  CHECK(holds_both(marked(*marks)));
}

TEST_CASE("marks of a tensor that a graph writes are not trusted", "[io][checkpoint]") {
  ferry::detail::access_tracker accesses;
  CHECK_FALSE(accesses.has_captured_writes());
  accesses.note_captured_write();
  CHECK(accesses.has_captured_writes());
}

}  // namespace ferry_test::changed_rows_test
