// SPDX-License-Identifier: Apache-2.0
#include "cache/cache_kit.hpp"
#include "support/watchdog.hpp"

#include <ferry/bags.hpp>
#include <ferry/cache.hpp>

#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <atomic>
#include <limits>
#include <thread>

/// Cached tables whose verbs get arrays of the cache as other operands, that are copied to each other, and that have
/// extreme numbers of rows.
namespace ferry_test::apart_test {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

constexpr std::size_t rows = 90, width = 4;

/// A single matcher: one made of several would refer to temporaries of this function.
auto refused() { return MessageMatches(ContainsSubstring("has rows in the same cached_table of 'table'")); }

}  // namespace

TEST_CASE("an array of the cache is no other operand of its verbs", "[cache]") {
  const exec_space exec;
  auto random = generator(71);
  const auto start = values<float>(random, rows * width);
  auto table = make<ferry::mapped_space>("table", rows, width, start);
  auto twin = make<ferry::mapped_space>("twin", rows, width, start);
  const ferry::optim::adagrad rule{.lr = 0.1};
  ferry::cached_table hot(table, ferry::cache::first{40});
  auto state = ferry::optim::make_state(rule, hot);
  auto twin_state = ferry::optim::make_state(rule, twin);
  const auto ids = skewed<std::int32_t>(random, 30, rows, 10, 7);
  const auto grads = make<ferry::device_space>("grads", 30, width, values<float>(random, 30 * width));
  const auto train = [&] {
    ferry::step(exec, rule, hot, state, ids, grads).wait();
    ferry::step(exec, rule, twin, twin_state, ids, grads).wait();
  };
  train();
  const auto repeats = ferry::make_plan(exec, std::vector<std::int32_t>(rows, 3), rows);
  const std::vector<std::int32_t> single{3};
  using ferry::invalid_argument;
  for (int turn = 0; turn < 2; ++turn) {
    CHECK_THROWS_MATCHES(ferry::copy(exec, hot, state.field(0)), invalid_argument, refused());
    CHECK_THROWS_MATCHES(ferry::copy(exec, state.field(0), hot), invalid_argument, refused());
    CHECK_THROWS_MATCHES(ferry::gather(exec, hot, repeats, state.field(0)), invalid_argument, refused());
    CHECK_THROWS_MATCHES(ferry::scatter(exec, hot, repeats, state.field(0)), invalid_argument, refused());
    CHECK_THROWS_MATCHES(ferry::scatter_add(exec, hot, repeats, state.field(0)), invalid_argument, refused());
    CHECK_THROWS_AS(ferry::scatter(exec, hot, single, state.field(0).first(1)), invalid_argument);
    CHECK_THROWS_AS(ferry::scatter(exec, hot, single, table.first(1)), invalid_argument);
    CHECK_THROWS_MATCHES(ferry::step(exec, rule, hot, state, repeats, state.field(0)), invalid_argument,
                         refused());
    const std::vector<std::int32_t> offsets(rows, 0);
    CHECK_THROWS_MATCHES(ferry::gather_bags(exec, hot, single, offsets, state.field(0)), invalid_argument,
                         refused());
    CHECK_THROWS_MATCHES(ferry::step_bags(exec, rule, hot, state, repeats, 1, state.field(0)),
                         invalid_argument, refused());
    train();
    hot.flush(exec).wait();
    CHECK(same_bits(take(table), take(twin)));
    CHECK(same_bits(take(state.field(0)), take(twin_state.field(0))));
  }
}

TEST_CASE("an array of the cache is neither indices nor factors nor current rows", "[cache]") {
  const exec_space exec;
  using ferry::invalid_argument;
  auto next = make<ferry::mapped_space>("table", std::vector<std::int32_t>(rows, 1));
  ferry::cached_table jumps(next, ferry::cache::first{40});
  ferry::tensor<std::int32_t, ferry::device_space> out("out", rows);
  CHECK_THROWS_MATCHES(ferry::gather(exec, jumps, next, out), invalid_argument, refused());
  CHECK_THROWS_MATCHES(ferry::scatter(exec, jumps, next, out), invalid_argument, refused());
  const std::vector<std::int32_t> first{0};
  CHECK_THROWS_MATCHES(ferry::gather_bags(exec, jumps, first, next, out), invalid_argument, refused());
  CHECK_THROWS_MATCHES(ferry::gather_bags(exec, jumps, next, 1, out), invalid_argument, refused());

  auto random = generator(73);
  auto table = make<ferry::mapped_space>("table", rows, width, values<float>(random, rows * width));
  ferry::cached_table hot(table, ferry::cache::first{40});
  const ferry::optim::adam adam;
  auto state = ferry::optim::make_state(adam, hot);
  const std::vector<std::int32_t> single{3};
  const auto grads = make<ferry::device_space>("grads", 1, width, values<float>(random, width));
  for (int turn = 0; turn < 2; ++turn)
    ferry::step(exec, adam, hot, state, single, grads, ferry::step_count::catch_up{}).wait();
  const std::vector<std::int32_t> repeats(rows, 5);
  CHECK_THROWS_MATCHES(ferry::gather(exec, adam, hot, state, repeats, state.field(0)), invalid_argument,
                       refused());

  const ferry::optim::rowwise_adagrad by_rows;
  auto second = make<ferry::mapped_space>("table", rows, width, values<float>(random, rows * width));
  ferry::cached_table others(second, ferry::cache::first{40});
  auto sums = ferry::optim::make_state(by_rows, others);
  ferry::step(exec, by_rows, others, sums, single, grads).wait();
  const ferry::optim::chain scaled{ferry::optim::sgd{}, ferry::optim::row_rates{sums.row_field_at(0)}};
  auto none = ferry::optim::make_state(scaled, others);
  CHECK_THROWS_MATCHES(ferry::step(exec, scaled, others, none, single, grads), invalid_argument, refused());
}

TEST_CASE("cached tables are copied to each other while others use them", "[cache]") {
  const watchdog guard("crosswise copies");
  const exec_space exec;
  auto random = generator(72);
  auto left = make<ferry::mapped_space>("left", rows, width, values<float>(random, rows * width));
  auto right = make<ferry::mapped_space>("right", rows, width, values<float>(random, rows * width));
  ferry::cached_table a(left, ferry::cache::first{40});
  ferry::cached_table b(right, ferry::cache::frequency{.rows = 30});
  const std::vector<std::int32_t> ids{1, 3, 88};
  const auto batch = make<ferry::device_space>("batch", 3, width, values<float>(random, 3 * width));
  std::atomic<int> failed{0};
  const auto repeat = [&](const auto& verb) {
    try {
      const exec_space instance;
      for (int turn = 0; turn < 60; ++turn) verb(instance);
    } catch (const std::exception& error) {
      ++failed;
      UNSCOPED_INFO(error.what());
    }
  };
  {
    std::vector<std::thread> threads;
    threads.emplace_back(repeat, [&](const exec_space& instance) { ferry::copy(instance, a, b).wait(); });
    threads.emplace_back(repeat, [&](const exec_space& instance) { ferry::copy(instance, b, a).wait(); });
    threads.emplace_back(repeat,
                         [&](const exec_space& instance) { ferry::scatter(instance, a, ids, batch).wait(); });
    threads.emplace_back(repeat,
                         [&](const exec_space& instance) { ferry::scatter(instance, b, ids, batch).wait(); });
    for (auto& thread : threads) thread.join();
  }
  CHECK(failed == 0);
  ferry::copy(exec, a, b).wait();
  a.flush(exec).wait();
  b.flush(exec).wait();
  CHECK(same_bits(take(left), take(right)));
  CHECK_THROWS_AS(ferry::copy(exec, a, a), ferry::invalid_argument);
}

TEST_CASE("caches of extreme numbers of rows", "[cache]") {
  using ferry::detail::cache_memory;
  const std::int64_t thousand_milliards = std::int64_t{1} << 40;
  CHECK_THROWS_MATCHES(
      cache_memory("table", thousand_milliards, std::int64_t{1} << 30), ferry::invalid_argument,
      MessageMatches(ContainsSubstring("the 1099511627776 rows of 'table' are too many for")));
  CHECK_THROWS_AS(cache_memory("table", 100, (std::int64_t{1} << 31) - 1), ferry::invalid_argument);
  ferry::detail::row_cache cache;
  cache.interval = std::numeric_limits<std::int64_t>::max();
  cache.batches = 5;
  CHECK(cache.bonus() == 0);
  cache.interval = 2;
  cache.counted_every = 1;
  CHECK(cache.bonus() == 2 * ferry::detail::row_cache::use - 1);
}

}  // namespace ferry_test::apart_test
