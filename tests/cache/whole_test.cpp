// SPDX-License-Identifier: Apache-2.0
#include "cache/cache_kit.hpp"
#include "support/test.hpp"
#include "support/watchdog.hpp"

#include <ferry/bags.hpp>
#include <ferry/cache.hpp>
#include <ferry/cache/verbs.hpp>

namespace ferry_test::whole_test {

// Verbs on whole cached tables, and how table and cache keep each other from missing changes.

constexpr std::size_t rows = 150, width = 12;

/// A table with a cache that has newer rows, and what the rows are.
struct dirty {
  exec_space exec;
  std::vector<float> now;
  ferry::tensor<float, ferry::mapped_space> table;
  ferry::cached_table<ferry::tensor<float, ferry::mapped_space>, ferry::cache::first> hot;

  explicit dirty(std::uint64_t salt)
      : table(make<ferry::mapped_space>("table", rows, width, std::vector<float>(rows * width, 1.0f))),
        hot(table, ferry::cache::first{40}) {
    auto random = generator(salt);
    now = values<float>(random, rows * width);
    std::vector<std::int64_t> every_row(rows);
    for (std::size_t r = 0; r < rows; ++r) every_row[r] = static_cast<std::int64_t>(r);
    auto batch = make<ferry::device_space>("batch", rows, width, now);
    ferry::scatter(exec, hot, every_row, batch).wait();
  }
};

/// 40 rows are in device memory only.
void require_dirty(const dirty& sample) { REQUIRE_FALSE(same_bits(take(sample.table), sample.now)); }

TEST_CASE("copy and clone see the changes of cached rows", "[cache][whole]") {
  dirty sample(1);
  require_dirty(sample);
  ferry::tensor<float, ferry::pageable_space> out("out", rows, width);
  ferry::copy(sample.exec, sample.hot, out).wait();
  CHECK(same_bits(take(out), sample.now));
  dirty second(2);
  require_dirty(second);
  const auto twin = ferry::clone<ferry::device_space>(second.exec, second.hot).get();
  CHECK(same_bits(take(twin), second.now));
  const auto same = ferry::clone(second.exec, second.hot, "same").get();
  CHECK(same.label() == "same");
  CHECK(same_bits(take(same), second.now));
  const auto some =
      ferry::gather<ferry::pinned_space>(sample.exec, sample.hot, std::vector<int>{3, 149}).get();
  CHECK(take(some)[0] == sample.now[3 * width]);
  CHECK(take(some)[width] == sample.now[149 * width]);
}

TEST_CASE("cached rows follow what is copied to the table and set in it", "[cache][whole]") {
  dirty sample(3);
  require_dirty(sample);
  auto random = generator(4);
  const auto next = values<float>(random, rows * width);
  auto source = make<ferry::pageable_space>("from", rows, width, next);
  ferry::copy(sample.exec, source, sample.hot).wait();
  const auto got =
      ferry::gather<ferry::pinned_space>(sample.exec, sample.hot, std::vector<int>{0, 39, 40, 149}).get();
  CHECK(take(got)[0] == next[0]);
  CHECK(take(got)[width + 1] == next[39 * width + 1]);
  CHECK(take(got)[3 * width] == next[149 * width]);

  const auto all_are = [&](float value) {
    const auto rows_now =
        ferry::gather<ferry::pinned_space>(sample.exec, sample.hot, std::vector<int>{0, 39, 40}).get();
    return take(rows_now) == std::vector<float>(3 * width, value);
  };
  ferry::init::zeros(sample.exec, sample.hot);
  CHECK(all_are(0.0f));
  ferry::init::constant(sample.exec, sample.hot, 2.5f);
  CHECK(all_are(2.5f));
  ferry::tensor<float, ferry::mapped_space> twin("twin", rows, width);
  ferry::init::uniform(sample.exec, sample.hot, -1.0, 1.0, 7);
  ferry::init::uniform(sample.exec, twin, -1.0, 1.0, 7);
  ferry::tensor<float, ferry::mapped_space> out("out", rows, width);
  ferry::copy(sample.exec, sample.hot, out).wait();
  CHECK(same_bits(take(out), take(twin)));
  ferry::init::normal(sample.exec, sample.hot, 1.0, 2.0, 8);
  ferry::init::normal(sample.exec, twin, 1.0, 2.0, 8);
  ferry::copy(sample.exec, sample.hot, out).wait();
  CHECK(same_bits(take(out), take(twin)));
}

TEST_CASE("the backing table is refused where changes would be missed", "[cache][whole]") {
  dirty sample(5);
  require_dirty(sample);
  ferry::tensor<float, ferry::device_space> out("out", 1, width);
  const std::string newer = "newer rows of 'table' in device memory";
  const std::string unseen = "rows of 'table' in device memory and would not see this write";
  CHECK_THROWS_MATCHES(ferry::gather(sample.exec, sample.table, std::vector<int>{1}, out),
                       ferry::invalid_argument, MessageMatches(ContainsSubstring(newer)));
  CHECK_THROWS_MATCHES(ferry::clone(sample.exec, sample.table), ferry::invalid_argument,
                       MessageMatches(ContainsSubstring(newer)));
  auto part = sample.table.first(3);
  CHECK_THROWS_MATCHES(ferry::gather(sample.exec, part, std::vector<int>{1}, out), ferry::invalid_argument,
                       MessageMatches(ContainsSubstring(newer)));
  CHECK_THROWS_MATCHES(ferry::init::zeros(sample.exec, sample.table), ferry::invalid_argument,
                       MessageMatches(ContainsSubstring(unseen)));
  CHECK_THROWS_MATCHES(ferry::cached_table(sample.table, ferry::cache::first{1}), ferry::invalid_argument,
                       MessageMatches(ContainsSubstring("has a cached_table already")));

  sample.hot.flush(sample.exec).wait();
  CHECK(same_bits(take(sample.table), sample.now));
  ferry::gather(sample.exec, sample.table, std::vector<int>{1}, out).wait();
  CHECK(take(out)[0] == sample.now[width]);
  CHECK_THROWS_MATCHES(ferry::scatter(sample.exec, sample.table, std::vector<int>{1}, out),
                       ferry::invalid_argument, MessageMatches(ContainsSubstring(unseen)));
  ferry::gather(sample.exec, sample.hot.table(sample.exec), std::vector<int>{2}, out).wait();
  CHECK(take(out)[0] == sample.now[2 * width]);

  // Nothing of it has harmed the cache, and its end frees the table.
  ferry::gather(sample.exec, sample.hot, std::vector<int>{3}, out).wait();
  CHECK(take(out)[0] == sample.now[3 * width]);
  {
    auto ends = std::move(sample.hot);
    CHECK(ends.rows() == rows);
  }
  ferry::init::zeros(sample.exec, sample.table);
  CHECK(take(sample.table) == std::vector<float>(rows * width, 0.0f));
  CHECK_THROWS_AS(ferry::gather(sample.exec, sample.hot, std::vector<int>{3}, out), ferry::invalid_argument);
}

TEST_CASE("catch_up and the gather of current rows work on a cached table", "[cache][whole]") {
  const exec_space exec;
  auto random = generator(6);
  const ferry::optim::adam rule{.lr = 0.05};
  const ferry::step_count::catch_up counting;
  const auto start = values<float>(random, rows * width);
  auto table = make<ferry::mapped_space>("table", rows, width, start);
  auto twin = make<ferry::mapped_space>("twin", rows, width, start);
  ferry::cached_table hot(table, ferry::cache::frequency{.rows = 30, .refresh = 2});
  auto state = ferry::optim::make_state(rule, hot, counting);
  auto twin_state = ferry::optim::make_state(rule, twin, counting);
  for (int call = 0; call < 9; ++call) {
    const auto ids = skewed<std::int32_t>(random, 40, rows, 0, 12);
    auto grads = make<ferry::device_space>("grads", 40, width, values<float>(random, 40 * width));
    auto mine = make<ferry::device_space>("mine", 40, width, std::vector<float>(40 * width, -1.0f));
    auto twin_out = make<ferry::device_space>("its", 40, width, std::vector<float>(40 * width, -2.0f));
    ferry::gather(exec, rule, hot, state, ids, mine).wait();
    ferry::gather(exec, rule, twin, twin_state, ids, twin_out).wait();
    CHECK(same_bits(take(mine), take(twin_out)));
    ferry::step(exec, rule, hot, state, ids, grads, counting).wait();
    ferry::step(exec, rule, twin, twin_state, ids, grads, counting).wait();
    if (call % 4 == 3) {
      ferry::catch_up(exec, rule, hot, state).wait();
      ferry::catch_up(exec, rule, twin, twin_state).wait();
    }
  }
  CHECK_THROWS_AS(ferry::clone(exec, state.field(0)),
                  ferry::invalid_argument);  // state is cached, too
  hot.flush(exec).wait();
  CHECK(same_bits(take(table), take(twin)));
  CHECK(same_bits(take(state.field(1)), take(twin_state.field(1))));
}

// Cached tables whose verbs get arrays of the cache as other operands, that are copied to each other, and that have
// extreme numbers of rows.

namespace apart {

constexpr std::size_t rows = 90, width = 4;

/// A single matcher: one made of several would refer to temporaries of this function.
auto refused() { return MessageMatches(ContainsSubstring("has rows in the same cached_table of 'table'")); }

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
      cache_memory("table", thousand_milliards, std::int64_t{1} << 30, 0), ferry::invalid_argument,
      MessageMatches(ContainsSubstring("the 1099511627776 rows of 'table' are too many for")));
  CHECK_THROWS_AS(cache_memory("table", 100, (std::int64_t{1} << 31) - 1, 0), ferry::invalid_argument);
  ferry::detail::row_cache cache;
  cache.interval = std::numeric_limits<std::int64_t>::max();
  cache.batches = 5;
  CHECK(cache.bonus() == 0);
  cache.interval = 2;
  cache.counted_every = 1;
  CHECK(cache.bonus() == 2 * ferry::detail::row_cache::use - 1);
}

}  // namespace apart

}  // namespace ferry_test::whole_test
