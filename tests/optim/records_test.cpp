// SPDX-License-Identifier: Apache-2.0
#include "optim/step_kit.hpp"
#include "support/oracle.hpp"
#include "support/test.hpp"

namespace ferry_test::records_test {

// Looking into records.

/// The elements of one part of every record, row by row.
template <class Records, class T, class Space>
std::vector<T> part_of(const Records& records, const ferry::detail::array_ref<T, Space>& part) {
  const auto bytes = take(records.bytes());
  const auto offset =
      static_cast<std::size_t>(reinterpret_cast<const std::byte*>(part.data) - records.bytes().data());
  const auto width = static_cast<std::size_t>(part.width());
  std::vector<T> result(records.rows() * width);
  for (std::size_t row = 0; row < records.rows(); ++row)
    std::memcpy(result.data() + row * width, bytes.data() + row * records.row_bytes() + offset,
                width * sizeof(T));
  return result;
}

/// Puts values there.
template <class Records, class T, class Space>
void put_part(Records& records, const ferry::detail::array_ref<T, Space>& part,
              const std::vector<T>& values) {
  auto bytes = take(records.bytes());
  const auto offset =
      static_cast<std::size_t>(reinterpret_cast<const std::byte*>(part.data) - records.bytes().data());
  const auto width = static_cast<std::size_t>(part.width());
  REQUIRE(values.size() == records.rows() * width);
  for (std::size_t row = 0; row < records.rows(); ++row)
    std::memcpy(bytes.data() + row * records.row_bytes() + offset, values.data() + row * width,
                width * sizeof(T));
  put(records.bytes(), bytes);
}

// Training of records gives the bits of training a table and its state, in every space and on every path.

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

// Records as other verbs see them, their counters, and what they refuse.

namespace records_verbs {

constexpr std::size_t rows = 19;
const ferry::optim::adam rule{.lr = 0.1};

template <class Space>
auto new_records(std::size_t width) {
  return ferry::optim::make_records<float, Space>(rule, "weights", rows, width);
}

TEST_CASE("records have the rule's parts and initial values", "[optim][records]") {
  using namespace ferry::optim;
  auto weights = make_records<ferry::half_t, ferry::pinned_space>(adagrad{.initial_accumulator_value = 0.25},
                                                                  "weights", 9, 5);
  STATIC_CHECK(std::is_same_v<decltype(weights)::value_type, float>);
  CHECK(weights.rows() == 9);
  CHECK(weights.width() == 5);
  CHECK(weights.label() == "weights");
  CHECK(weights.row_bytes() % 32 == 0);
  CHECK(weights.bytes().rows() == 9);
  CHECK(weights.bytes().width() == weights.row_bytes());
  CHECK(weights.table().describe() == "'weights' [9 x 5] in pinned_space");
  CHECK(weights.fields() == 1);
  CHECK(weights.field("sum").data == weights.field(0).data);
  CHECK(weights.field("sum").label == "weights::sum");
  CHECK(part_of(weights, weights.field("sum")) == std::vector<float>(45, 0.25f));
  // Each part begins on a multiple of 32 bytes.
  const auto* begin = weights.bytes().data();
  CHECK((reinterpret_cast<std::byte*>(weights.field(0).data) - begin) % 32 == 0);
  CHECK(weights.row_bytes() == 64);  // 10 bytes, 20 bytes

  auto two = make_records<double, ferry::mapped_space>(adam{}, "two", 4, 3);
  STATIC_CHECK(std::is_same_v<decltype(two)::value_type, double>);
  CHECK(two.fields() == 2);
  CHECK(two.row_bytes() == 96);
  CHECK(two.field("exp_avg_sq").data == two.field(1).data);
  CHECK_THROWS_MATCHES(two.field("max_exp_avg_sq"), ferry::invalid_argument,
                       MessageMatches(ContainsSubstring("adam") && ContainsSubstring("'max_exp_avg_sq'")));
  CHECK_THROWS_MATCHES(two.field("sum"), ferry::invalid_argument,
                       MessageMatches(ContainsSubstring("no active state 'sum'")));

  auto second = make_records<float, ferry::device_space>(rowwise_adagrad{.initial_accumulator_value = 0.5},
                                                         "own", 6, 8);
  CHECK(second.fields() == 0);
  CHECK(second.field("sum").width() == 1);
  CHECK(second.field("sum").rows() == 6);
  CHECK(part_of(second, second.field("sum")) == std::vector<float>(6, 0.5f));
  CHECK(second.row_bytes() == 64);

  auto plain = make_records<float, ferry::pageable_space>(sgd{}, "plain", 6, 8);
  CHECK(plain.fields() == 0);
  CHECK(plain.row_bytes() == 32);
  CHECK(make_records<float, ferry::pageable_space>(adam{}, "none", 0, 8).rows() == 0);
}

TEST_CASE("records that can't be made", "[optim][records]") {
  using namespace ferry::optim;
  using space = ferry::pageable_space;
  CHECK_THROWS_MATCHES((make_records<float, space>(adam{}, "weights", -1, 4)), ferry::invalid_argument,
                       MessageMatches(ContainsSubstring("'weights'")));
  CHECK_THROWS_AS((make_records<float, space>(adam{}, "weights", 4, -1)), ferry::invalid_argument);
  constexpr auto huge = std::numeric_limits<std::int64_t>::max();
  CHECK_THROWS_AS((make_records<float, space>(adam{}, "weights", huge, huge)), ferry::invalid_argument);
  CHECK_THROWS_AS((make_records<float, space>(adam{}, "weights", huge / 8, 2)), ferry::invalid_argument);
  CHECK_THROWS_MATCHES((make_records<float, space>(adam{.lr = -1.0}, "weights", 4, 4)),
                       ferry::invalid_argument,
                       MessageMatches(ContainsSubstring("adam") && ContainsSubstring("lr")));
}

TEMPLATE_TEST_CASE("verbs on the weights of records", "[optim][records]", ferry::device_space,
                   ferry::pinned_space, ferry::mapped_space, ferry::pageable_space) {
  const exec_space exec;
  for (const std::size_t width : {1u, 4u, 35u}) {
    CAPTURE(TestType::name, width);
    auto random = generator(1500 + width);
    auto weights = new_records<TestType>(width);
    put_part(weights, weights.field(0), std::vector<float>(rows * width, 7.0f));
    put_part(weights, weights.field(1), std::vector<float>(rows * width, 8.0f));
    const auto start = values<float>(random, rows * width);
    put_part(weights, weights.table(), start);
    const auto ids = indices<std::int64_t>(random, 30, rows);
    for_each_path<TestType, ferry::device_space, work::moves>([&](auto path) {
      CAPTURE(path.name);
      auto out = make<ferry::device_space>("out", 30, width, std::vector<float>(30 * width, -77.0f));
      ferry::gather(exec, weights.table(), ids, out, path).wait();
      CHECK(take(out) == gathered(start, width, ids, std::vector<float>(30 * width)));
    });
    for_each_path<TestType, ferry::device_space, work::changes>([&](auto path) {
      CAPTURE(path.name);
      put_part(weights, weights.table(), start);
      const auto fresh = values<float>(random, 30 * width);
      ferry::scatter(exec, weights.table(), ids, make<ferry::device_space>("values", 30, width, fresh), path)
          .wait();
      CHECK(close(part_of(weights, weights.table()),
                  scattered(start, width, ids, fresh, false, ferry::duplicates::last::name)));
    });
    // There and back by copy.
    ferry::tensor<float, ferry::pageable_space> dense("dense", rows, width);
    put(dense, start);
    ferry::copy(exec, dense, weights.table()).wait();
    CHECK(part_of(weights, weights.table()) == start);
    put(dense, std::vector<float>(rows * width, -77.0f));
    ferry::copy(exec, weights.table(), dense).wait();
    CHECK(take(dense) == start);
    // As a table without records is initialised.
    ferry::tensor<float, TestType> second("other", rows, width);
    if constexpr (!std::is_same_v<TestType, ferry::pageable_space>) {
      ferry::init::uniform(exec, weights.table(), -0.5f, 0.5f, 42);
      ferry::init::uniform(exec, second, -0.5f, 0.5f, 42);
      CHECK(part_of(weights, weights.table()) == take(second));
    }
    CHECK(part_of(weights, weights.field(0)) == std::vector<float>(rows * width, 7.0f));
    CHECK(part_of(weights, weights.field(1)) == std::vector<float>(rows * width, 8.0f));
  }
}

/// Records next to a table in device_space and its state, under a policy that counts rows.
template <class Space, class Count, class Path>
void counting(Count count, Path path) {
  constexpr std::size_t width = 35;
  CAPTURE(Space::name, Count::name, path.name);
  auto random = generator(1510);
  const exec_space exec;
  const auto start = values<float>(random, rows * width);
  auto table = make<ferry::device_space>("weights", rows, width, start);
  auto state = ferry::optim::make_state(rule, table, count);
  auto weights = ferry::optim::make_records<float, Space>(rule, "weights", rows, width, count);
  REQUIRE(weights.row_steps().rows() == rows);
  put_part(weights, weights.table(), start);
  std::vector<std::int64_t> every(rows);
  for (std::size_t row = 0; row < rows; ++row) every[row] = static_cast<std::int64_t>(row);
  const auto same = [&] {
    CHECK(same_bits(part_of(weights, weights.table()), take(table)));
    for (int f = 0; f < 2; ++f) CHECK(same_bits(part_of(weights, weights.field(f)), take(state.field(f))));
    CHECK(take(weights.row_steps()) == take(state.row_steps()));
  };
  for (int step = 1; step <= 40; ++step) {
    const auto ids = indices<std::int64_t>(random, 3, rows);
    const auto grads = make<ferry::device_space>("grads", 3, width, values<float>(random, 3 * width));
    ferry::step(exec, rule, table, state, ids, grads, count).wait();
    ferry::step(exec, rule, weights, ids, grads, path, count).wait();
    if (step % 20 != 0) continue;
    same();
    if constexpr (Count::catches_up) {
      if constexpr (!std::is_same_v<Space, ferry::pageable_space>) {
        auto first = make<ferry::device_space>("one", rows, width, std::vector<float>(rows * width, -77.0f));
        auto second =
            make<ferry::device_space>("other", rows, width, std::vector<float>(rows * width, -78.0f));
        ferry::gather(exec, rule, table, state, every, first).wait();
        ferry::gather(exec, rule, weights, std::as_const(every), second).wait();
        CHECK(same_bits(take(first), take(second)));
        CHECK_FALSE(same_bits(take(first), take(table)));
        put(second, std::vector<float>(rows * width, -78.0f));
        const auto plan = ferry::make_plan(exec, every, rows);
        ferry::gather(exec, rule, weights, plan, second).wait();
        CHECK(same_bits(take(first), take(second)));
      }
      same();
      ferry::catch_up(exec, rule, table, state).wait();
      ferry::catch_up(exec, rule, weights).wait();
      same();
      CHECK(take(weights.row_steps()) == std::vector<std::uint32_t>(rows, static_cast<std::uint32_t>(step)));
    }
  }
}

TEMPLATE_TEST_CASE("rows of records count their steps", "[optim][records][step_count]", ferry::device_space,
                   ferry::mapped_space, ferry::pageable_space) {
  for_each_path<TestType, ferry::device_space, work::changes>([](auto path) {
    if constexpr (!std::is_same_v<TestType, ferry::device_space>)
      counting<TestType>(ferry::step_count::per_row{}, path);
    if constexpr (!std::is_same_v<TestType, ferry::pageable_space>)
      counting<TestType>(ferry::step_count::catch_up{}, path);
  });
}

TEST_CASE("steps on records that fail or are skipped change nothing", "[optim][records]") {
  const exec_space exec;
  auto random = generator(1520);
  auto weights = new_records<ferry::mapped_space>(6);
  put_part(weights, weights.table(), values<float>(random, rows * 6));
  const auto before = take(weights.bytes());
  auto spoiled = values<float>(random, 12);
  const auto grads = make<ferry::device_space>("grads", 2, 6, spoiled);
  spoiled[8] = std::numeric_limits<float>::infinity();
  const auto bad = make<ferry::device_space>("bad", 2, 6, spoiled);
  const std::vector<std::int64_t> fine{3, 1}, outside{3, 19};
  CHECK_THROWS_MATCHES(
      ferry::step(exec, rule, weights, outside, grads).wait(), ferry::out_of_range,
      MessageMatches(ContainsSubstring("'weights' [19 x 6]") && ContainsSubstring("index 19 at position 1")));
  ferry::step(exec, rule, weights, fine, bad, ferry::nonfinite::skip{}).wait();
  CHECK(weights.skipped() == 1);
  CHECK(weights.steps() == 0);
  const ferry::tensor<float, ferry::device_space> wide("wide", 2, 7);
  CHECK_THROWS_MATCHES(ferry::step(exec, rule, weights, fine, wide), ferry::invalid_argument,
                       MessageMatches(ContainsSubstring("'wide' [2 x 7]")));
  ferry::optim::adam more = rule;
  more.amsgrad = true;
  CHECK_THROWS_MATCHES(ferry::step(exec, more, weights, fine, grads), ferry::invalid_argument,
                       MessageMatches(ContainsSubstring("3 state fields")));
  CHECK(take(weights.bytes()) == before);
  ferry::step(exec, rule, weights, fine, grads).wait();
  CHECK(weights.steps() == 1);
  CHECK(take(weights.bytes()) != before);
}

TEST_CASE("transforms and random rounding on records", "[optim][records]") {
  const exec_space exec;
  auto random = generator(1530);
  constexpr std::size_t width = 35;
  const ferry::optim::chain chain{rule, ferry::optim::clip_norm{2.0}};
  const auto start = values<ferry::half_t>(random, rows * width);
  auto table = make<ferry::mapped_space>("weights", rows, width, start);
  auto state = ferry::optim::make_state(chain, table);
  auto weights =
      ferry::optim::make_records<ferry::half_t, ferry::mapped_space>(chain, "weights", rows, width);
  put_part(weights, weights.table(), start);
  state.set_seed(77);
  weights.set_seed(77);
  CHECK(weights.seed() == 77);
  for (int step = 0; step < 3; ++step) {
    const auto ids = indices<std::int64_t>(random, 9, rows);
    const auto grads = make<ferry::device_space>("grads", 9, width, values<float>(random, 9 * width));
    ferry::step(exec, chain, table, state, ids, grads, ferry::rounding::stochastic{}).wait();
    ferry::step(exec, chain, weights, ids, grads, ferry::rounding::stochastic{}).wait();
  }
  CHECK(same_bits(part_of(weights, weights.table()), take(table)));
  CHECK(same_bits(part_of(weights, weights.field("exp_avg_sq")), take(state.field("exp_avg_sq"))));
}

}  // namespace records_verbs

}  // namespace ferry_test::records_test
