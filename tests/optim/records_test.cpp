// SPDX-License-Identifier: Apache-2.0
#include "optim/records_kit.hpp"
#include "support/oracle.hpp"
#include "support/paths.hpp"

#include <catch2/catch_template_test_macros.hpp>

#include <cstdint>
#include <type_traits>
#include <vector>

/// Training of records gives the bits of training a table and its state, in every space and on every path.
namespace ferry_test::records_test {

namespace {

constexpr std::size_t rows = 19, n = 23;

/// The table stays in device_space and leaves the path to ferry: its own tests take it everywhere.
template <class T, class Space, class Rule, class Path>
void train_both(const Rule& rule, std::size_t width, Path path) {
  CAPTURE(Rule::name, Space::name, path.name, width);
  auto random = generator(1400 + width);
  const exec_space exec;
  const auto start = values<T>(random, rows * width);
  auto table = make<ferry::device_space>("weights", rows, width, start);
  auto state = ferry::optim::make_state(rule, table);
  auto records = ferry::optim::make_records<T, Space>(rule, "weights", rows, width);
  put_part(records, records.table(), start);
  REQUIRE(records.fields() == state.fields());
  for (int step = 1; step <= 10; ++step) {
    const auto ids = indices<std::int64_t>(random, n, rows - 2);
    const auto unique = unique_indices<std::int64_t>(random, n < rows ? n : rows, rows);
    const auto grads = make<ferry::device_space>("grads", n, width, values<float>(random, n * width));
    if (step % 3 == 0) {
      const auto few = make<ferry::device_space>("few", unique.size(), width,
                                                 values<float>(random, unique.size() * width));
      const ferry::duplicates::assume_unique promised;
      ferry::step(exec, rule, table, state, unique, few, promised).wait();
      ferry::step(exec, rule, records, unique, few, path, promised).wait();
    } else if (step % 3 == 1) {
      const auto plan = ferry::make_plan(exec, ids, rows);
      ferry::step(exec, rule, table, state, plan, grads).wait();
      ferry::step(exec, rule, records, plan, grads, path).wait();
    } else {
      ferry::step(exec, rule, table, state, ids, grads).wait();
      ferry::step(exec, rule, records, ids, grads, path).wait();
    }
  }
  CHECK(same_bits(part_of(records, records.table()), take(table)));
  CHECK_FALSE(same_bits(take(table), start));
  for (int f = 0; f < state.fields(); ++f)
    CHECK(same_bits(part_of(records, records.field(f)), take(state.field(f))));
  for (int f = 0; f < decltype(state)::row_fields; ++f)
    CHECK(same_bits(part_of(records, records.row_field_ref(f)), take(state.row_field_at(f))));
  CHECK(records.steps() == 10);
}

/// Every byte of a record that is no weight and no state.
template <class T, class Rule>
void padding_stays_zero(const Rule& rule, std::size_t width) {
  CAPTURE(Rule::name, width);
  auto random = generator(1410);
  auto records = ferry::optim::make_records<T, ferry::mapped_space>(rule, "weights", rows, width);
  put_part(records, records.table(), std::vector<T>(rows * width, T(1.5f)));
  ferry::step(exec_space{}, rule, records, indices<std::int64_t>(random, n, rows),
              make<ferry::device_space>("grads", n, width, values<float>(random, n * width)))
      .wait();
  put_part(records, records.table(), std::vector<T>(rows * width, T(0.0f)));
  for (int f = 0; f < records.fields(); ++f)
    put_part(records, records.field(f), std::vector<float>(rows * width, 0.0f));
  for (int f = 0; f < decltype(records)::row_fields; ++f)
    put_part(records, records.row_field_ref(f), std::vector<float>(rows, 0.0f));
  CHECK(take(records.bytes()) == std::vector<std::byte>(records.rows() * records.row_bytes(), std::byte{0}));
}

}  // namespace

// Each rule on every path in one or two spaces: element by element where the rows are in device or host memory, by whole rows.
TEMPLATE_TEST_CASE("records train as table and state do", "[optim][records]", ferry::device_space,
                   ferry::pinned_space, ferry::mapped_space, ferry::pageable_space) {
  using namespace ferry::optim;
  for_each_path<TestType, ferry::device_space, work::changes>([](auto path) {
    for (const std::size_t width : {1u, 4u, 35u, 130u}) {
      if constexpr (std::is_same_v<TestType, ferry::device_space> ||
                    std::is_same_v<TestType, ferry::pageable_space>)
        train_both<float, TestType>(adam{.lr = 0.1}, width, path);
      if constexpr (std::is_same_v<TestType, ferry::mapped_space>) {
        train_both<ferry::half_t, TestType>(adam{.lr = 0.1}, width, path);
        train_both<float, TestType>(rowwise_adagrad{.lr = 0.1, .initial_accumulator_value = 0.5}, width,
                                    path);
      }
      if constexpr (std::is_same_v<TestType, ferry::pinned_space>)
        train_both<float, TestType>(sgd{.lr = 0.1}, width, path);
    }
  });
}

TEST_CASE("what lies between the parts of a record stays zero", "[optim][records]") {
  for (const std::size_t width : {1u, 4u, 35u, 130u}) {
    padding_stays_zero<float>(ferry::optim::adam{.amsgrad = true}, width);
    padding_stays_zero<ferry::half_t>(ferry::optim::partial_rowwise_adam{}, width);
  }
}

}  // namespace ferry_test::records_test
