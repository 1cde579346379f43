// SPDX-License-Identifier: Apache-2.0
#include "cache/cache_kit.hpp"

#include <ferry/cache.hpp>
#include <ferry/cache/verbs.hpp>
#include <ferry/int8.hpp>
#include <ferry/optim/records.hpp>
#include <ferry/optim/step.hpp>

#include <utility>

namespace ferry_test::dense_step_test {

// Steps of all rows of cached tables have the bits of steps without a cache.

constexpr std::size_t table_rows = 90, table_width = 12;

/// A batch between two steps moves rows into the cache.
template <class Rule, class... Policies>
void compare(const Rule& rule, std::size_t cached, Policies... policies) {
  CAPTURE(cached, Rule::name);
  auto random = generator(4100 + cached);
  const exec_space exec;
  const auto start = values<float>(random, table_rows * table_width);
  auto table = make<ferry::mapped_space>("table", table_rows, table_width, start);
  auto twin = make<ferry::mapped_space>("twin", table_rows, table_width, start);
  ferry::cached_table hot(table, ferry::cache::frequency{.rows = cached, .refresh = 2});
  auto state = ferry::optim::make_state<ferry::mapped_space>(rule, hot);
  auto twin_state = ferry::optim::make_state<ferry::mapped_space>(rule, twin);
  for (int turn = 0; turn < 12; ++turn) {
    CAPTURE(turn);
    const auto ids =
        skewed<std::int64_t>(random, 40, table_rows, turn < 6 ? 0 : table_rows / 2, table_rows / 8 + 1);
    const auto few =
        make<ferry::device_space>("few", 40, table_width, values<float>(random, 40 * table_width));
    const auto grads = make<ferry::device_space>("grads", table_rows, table_width,
                                                 values<float>(random, table_rows * table_width));
    ferry::step(exec, rule, hot, state, ids, few, policies...).wait();
    ferry::step(exec, rule, twin, twin_state, ids, few, policies...).wait();
    ferry::step(exec, rule, hot, state, grads, policies...).wait();
    ferry::step(exec, rule, twin, twin_state, grads, policies...).wait();
    auto batch =
        make<ferry::device_space>("batch", 40, table_width, std::vector<float>(40 * table_width, -1.0f));
    auto expected =
        make<ferry::device_space>("expected", 40, table_width, std::vector<float>(40 * table_width, -2.0f));
    ferry::gather(exec, hot, ids, batch).wait();
    ferry::gather(exec, twin, ids, expected).wait();
    REQUIRE(same_bits(take(batch), take(expected)));
  }
  CHECK(state.steps() == 24);
  hot.flush(exec).wait();
  CHECK(same_bits(take(table), take(twin)));
  CHECK(same_bits(take(state.field(0)), take(twin_state.field(0))));
}

TEST_CASE("steps of all rows of cached tables", "[cache][step][dense]") {
  for (const std::size_t cached : {std::size_t{1}, table_rows / 4, table_rows}) {
    compare(ferry::optim::adam{.lr = 0.05}, cached);
    compare(ferry::optim::sgd{.lr = 0.1, .momentum = 0.9}, cached, ferry::step_count::catch_up{});
  }
}

TEST_CASE("a step of all rows of cached records", "[cache][step][dense]") {
  const exec_space exec;
  auto random = generator(4200);
  const ferry::optim::adam rule{.lr = 0.05};
  const auto start = make<ferry::device_space>("start", table_rows, table_width,
                                               values<float>(random, table_rows * table_width));
  auto records =
      ferry::optim::make_records<float, ferry::mapped_space>(rule, "records", table_rows, table_width);
  auto twin = ferry::optim::make_records<float, ferry::mapped_space>(rule, "twin", table_rows, table_width);
  ferry::copy(exec, start, records.table()).wait();
  ferry::copy(exec, start, twin.table()).wait();
  ferry::cached_table hot(records, ferry::cache::frequency{.rows = 20, .refresh = 1});
  for (int turn = 0; turn < 5; ++turn) {
    const auto ids = skewed<std::int64_t>(random, 40, table_rows, 0, table_rows / 8 + 1);
    const auto few =
        make<ferry::device_space>("few", 40, table_width, values<float>(random, 40 * table_width));
    const auto grads = make<ferry::device_space>("grads", table_rows, table_width,
                                                 values<float>(random, table_rows * table_width));
    ferry::step(exec, rule, hot, ids, few).wait();
    ferry::step(exec, rule, twin, ids, few).wait();
    ferry::step(exec, rule, hot, grads).wait();
    ferry::step(exec, rule, twin, grads).wait();
  }
  hot.flush(exec).wait();
  ferry::tensor<float, ferry::mapped_space> weights("read", table_rows, table_width),
      expected("expected", table_rows, table_width);
  ferry::copy(exec, records.table(), weights).wait();
  ferry::copy(exec, twin.table(), expected).wait();
  CHECK(same_bits(take(weights), take(expected)));
}

// Cached optimizer records, whose state lies with the weights, next to records without a cache.

template <class T, class Rule, class StepCount>
void random_steps(const Rule& rule, std::size_t rows, std::size_t width, std::size_t cached, int refresh,
                  StepCount counting, std::uint64_t salt) {
  CAPTURE(rows, width, cached, refresh, salt);
  auto random = generator(salt);
  const exec_space exec;
  auto records = ferry::optim::make_records<T, ferry::mapped_space>(rule, "table", rows, width);
  auto twin = ferry::optim::make_records<T, ferry::mapped_space>(rule, "twin", rows, width);
  ferry::init::uniform(exec, twin.table(), -1.0, 1.0, salt);
  {
    ferry::cached_table hot(records, ferry::cache::frequency{.rows = cached, .refresh = refresh});
    ferry::init::uniform(exec, hot, -1.0, 1.0, salt);
    for (int call = 0; call < 25; ++call) {
      CAPTURE(call);
      const std::size_t n = random() % 70;
      const auto ids = skewed<std::int64_t>(random, n, rows, call < 12 ? 0 : rows / 2, rows / 8 + 1);
      auto grads = make<ferry::device_space>("grads", n, width, values<float>(random, n * width));
      auto batch = make<ferry::device_space>("batch", n, width, std::vector<T>(n * width, T(3)));
      auto twin_out = make<ferry::device_space>("its", n, width, std::vector<T>(n * width, T(4)));
      const auto plan = ferry::make_plan(exec, ids, rows);
      if constexpr (StepCount::catches_up) {
        ferry::gather(exec, rule, hot, plan, batch).wait();
        ferry::gather(exec, rule, twin, plan, twin_out).wait();
      } else if (call % 2 == 0) {
        ferry::gather(exec, hot, plan, batch).wait();
        ferry::gather(exec, twin.table(), plan, twin_out).wait();
      } else {
        ferry::gather(exec, hot, ids, batch).wait();
        ferry::gather(exec, twin.table(), ids, twin_out).wait();
      }
      REQUIRE(same_bits(take(batch), take(twin_out)));
      if (call % 3 == 2) {
        ferry::step(exec, rule, hot, ids, grads, counting).wait();
        ferry::step(exec, rule, twin, ids, grads, counting).wait();
      } else {
        ferry::step(exec, rule, hot, plan, grads, counting).wait();
        ferry::step(exec, rule, twin, plan, grads, counting).wait();
      }
      if (call % 11 == 4) {
        ferry::scatter(exec, hot, plan, batch).wait();
        ferry::scatter(exec, twin.table(), plan, batch).wait();
      }
      if (call % 11 == 7) {
        ferry::scatter_add(exec, hot, ids, grads).wait();
        ferry::scatter_add(exec, twin.table(), ids, grads).wait();
      }
      if constexpr (StepCount::catches_up)
        if (call % 13 == 12) {
          ferry::catch_up(exec, rule, hot).wait();
          ferry::catch_up(exec, rule, twin).wait();
        }
      if (call == 24) {
        const auto moved = std::move(records);  // the cache stays with the memory
        records = ferry::optim::make_records<T, ferry::mapped_space>(rule, "other", 1, 1);
        if (n != 0) CHECK_THROWS_AS(ferry::clone(exec, moved.bytes()), ferry::invalid_argument);
        hot.flush(exec).wait();
        CHECK(same_bits(take(moved.bytes()), take(twin.bytes())));
        return;
      }
    }
  }
}

template <class T, class Rule, class StepCount = ferry::step_count::global>
void all_sizes(const Rule& rule, std::uint64_t salt, StepCount counting = {}) {
  for (const std::size_t cached : cache_sizes(180)) {
    random_steps<T>(rule, 180, 16, cached, 1, counting, ++salt);
    random_steps<T>(rule, 180, 7, cached, 6, counting, ++salt);
  }
}

TEST_CASE("steps on cached records give the bits of records without a cache", "[cache][records]") {
  all_sizes<float>(ferry::optim::adam{.lr = 0.05, .weight_decay = 0.01}, 5000);
  all_sizes<ferry::half_t>(ferry::optim::rowwise_adagrad{.lr = 0.1}, 5100);
}

TEST_CASE("counters of rows are cached with records", "[cache][records]") {
  all_sizes<float>(ferry::optim::adam{.lr = 0.05}, 5200, ferry::step_count::per_row{});
  all_sizes<float>(ferry::optim::adam{.lr = 0.05}, 5300, ferry::step_count::catch_up{});
}

TEST_CASE("records are whole after the cache has ended", "[cache][records]") {
  auto random = generator(5400);
  const exec_space exec;
  const ferry::optim::adam rule{.lr = 0.05};
  auto records = ferry::optim::make_records<float, ferry::mapped_space>(rule, "table", 50, 9);
  auto twin = ferry::optim::make_records<float, ferry::mapped_space>(rule, "twin", 50, 9);
  ferry::init::uniform(exec, records.table(), -1.0, 1.0, 7);
  ferry::init::uniform(exec, twin.table(), -1.0, 1.0, 7);
  {
    ferry::cached_table hot(records, ferry::cache::first{20});
    auto second = std::move(hot);
    for (int call = 0; call < 3; ++call) {
      const auto ids = indices<std::int32_t>(random, 30, 50);
      auto grads = make<ferry::device_space>("grads", 30, 9, values<float>(random, 30 * 9));
      ferry::step(exec, rule, second, ids, grads).wait();
      ferry::step(exec, rule, twin, ids, grads).wait();
    }
    ferry::tensor<float, ferry::pageable_space> out("out", 50, 9);
    ferry::copy(exec, second, out).wait();
    ferry::tensor<float, ferry::pageable_space> twin_out("its", 50, 9);
    ferry::copy(exec, twin.table(), twin_out).wait();
    CHECK(same_bits(take(out), take(twin_out)));
    CHECK(records.steps() == 3);
  }
  CHECK(same_bits(take(records.bytes()), take(twin.bytes())));
  ferry::scatter(exec, records.table(), std::vector{1},
                 make<ferry::device_space>("one", 1, 9, std::vector<float>(9, 1.0f)))
      .wait();
}

// Cached tables of 8-bit rows.

TEST_CASE("8-bit rows of a cached table have the bits of a table without a cache", "[cache][int8]") {
  const exec_space exec;
  const ferry::optim::rowwise_adagrad rule{.lr = 0.1};
  constexpr std::size_t rows = 130, n = 60;
  std::uint64_t salt = 500;
  for (const std::size_t width : {8, 21}) {
    for (const std::size_t cached : cache_sizes(rows)) {
      CAPTURE(width, cached);
      auto random = generator(++salt);
      ferry::rowwise_int8_tensor<ferry::mapped_space> table("table", rows, width), twin("twin", rows, width);
      auto start = make<ferry::mapped_space>("start", rows, width, values<float>(random, rows * width));
      ferry::quantize(exec, start, table).wait();
      ferry::quantize(exec, start, twin).wait();
      {
        ferry::cached_table hot(table, ferry::cache::frequency{.rows = cached, .refresh = 2});
        auto state = ferry::optim::make_state(rule, hot);
        auto twin_state = ferry::optim::make_state(rule, twin);
        for (int call = 0; call < 10; ++call) {
          CAPTURE(call);
          const auto ids = skewed<std::int32_t>(random, n, rows, 10, 14);
          const auto plan = ferry::make_plan(exec, ids, rows);
          auto mine = make<ferry::device_space>("mine", n, width, values<float>(random, n * width));
          auto twin_out = make<ferry::device_space>("its", n, width, take(mine));
          ferry::scatter(exec, hot, plan, mine).wait();
          ferry::scatter(exec, twin, plan, twin_out).wait();
          ferry::scatter(exec, hot, ids, mine, ferry::duplicates::mean{}).wait();
          ferry::scatter(exec, twin, ids, twin_out, ferry::duplicates::mean{}).wait();
          ferry::step(exec, rule, hot, state, plan, mine).wait();
          ferry::step(exec, rule, twin, twin_state, plan, twin_out).wait();
          ferry::gather(exec, hot, ids, mine).wait();
          ferry::gather(exec, twin, ids, twin_out).wait();
          REQUIRE(same_bits(take(mine), take(twin_out)));
        }
        if (cached > 1) CHECK(hot.statistics().hits > 0);
        ferry::tensor<std::byte, ferry::pageable_space> records("records", rows, table.row_bytes());
        ferry::copy(exec, hot, records).wait();
        CHECK(take(records) == take(twin.records()));
      }
      CHECK(take(table.records()) == take(twin.records()));
    }
  }
}

}  // namespace ferry_test::dense_step_test
