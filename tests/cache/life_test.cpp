// SPDX-License-Identifier: Apache-2.0
#include "cache/cache_kit.hpp"
#include "support/test.hpp"

#include <ferry/cache.hpp>

/// Cached tables in trouble: bad indices, no memory, objects that end before others, several threads.
namespace ferry_test::life_test {

constexpr std::size_t rows = 140, width = 8;
const ferry::optim::adam rule{.lr = 0.05};

using table_type = ferry::tensor<float, ferry::mapped_space>;

struct pair_of_tables {
  exec_space exec;
  std::mt19937_64 random;
  table_type table, twin;

  explicit pair_of_tables(std::uint64_t salt) : random(generator(salt)) {
    const auto start = values<float>(random, rows * width);
    table = make<ferry::mapped_space>("table", rows, width, start);
    twin = make<ferry::mapped_space>("table", rows, width, start);
  }
  auto batch(std::size_t n) {
    return make<ferry::device_space>("batch", n, width, values<float>(random, n * width));
  }
  /// One batch of training on both.
  template <class Hot, class State, class Other>
  void train(Hot& hot, State& state, Other& twin_state) {
    const auto ids = skewed<std::int32_t>(random, 50, rows, 20, 15);
    const auto plan = ferry::make_plan(exec, ids, rows);
    auto mine = batch(50);
    auto twin_out = batch(50);
    ferry::gather(exec, hot, plan, mine).wait();
    ferry::gather(exec, twin, plan, twin_out).wait();
    REQUIRE(same_bits(take(mine), take(twin_out)));
    ferry::step(exec, rule, hot, state, plan, mine).wait();
    ferry::step(exec, rule, twin, twin_state, plan, twin_out).wait();
  }
};

std::string text_of(const std::function<void()>& fails) {
  try {
    fails();
  } catch (const ferry::error& error) {
    return error.what();
  }
  return "no error";
}

struct budget_of_device {
  explicit budget_of_device(std::size_t more) {
    ferry::trim<ferry::device_space>();
    ferry::set_memory_budget<ferry::device_space>(ferry::memory_statistics<ferry::device_space>().current +
                                                  more);
  }
  budget_of_device(const budget_of_device&) = delete;
  budget_of_device& operator=(const budget_of_device&) = delete;
  ~budget_of_device() { ferry::set_memory_budget<ferry::device_space>(0); }
};

TEST_CASE("bad batches leave cached tables as they are", "[cache][life]") {
  pair_of_tables tables(1);
  ferry::cached_table hot(tables.table, ferry::cache::first{60});
  auto state = ferry::optim::make_state(rule, hot);
  auto twin_state = ferry::optim::make_state(rule, tables.twin);
  tables.train(hot, state, twin_state);
  const std::vector<std::int32_t> bad{3, 70, -1, 4, 140}, twice{5, 6, 5, 100, 100};
  auto mine = tables.batch(5);
  auto twin_out = make<ferry::device_space>("batch", 5, width, take(mine));
  const auto alike = [&](const auto& verb) {
    const auto message = text_of([&] { verb(hot, state, mine); });
    CHECK(message == text_of([&] { verb(tables.twin, twin_state, twin_out); }));
    CHECK(message != "no error");
  };
  alike([&](auto& table, auto&, auto& batch) { ferry::gather(tables.exec, table, bad, batch).wait(); });
  CHECK(same_bits(take(mine), take(twin_out)));
  alike([&](auto& table, auto&, auto& batch) { ferry::scatter(tables.exec, table, bad, batch).wait(); });
  alike([&](auto& table, auto&, auto& batch) {
    ferry::scatter(tables.exec, table, bad, batch, ferry::duplicates::assume_unique{}).wait();
  });
  alike([&](auto& table, auto&, auto& batch) {
    ferry::scatter_add(tables.exec, table, twice, batch, ferry::duplicates::reject{}).wait();
  });
  alike([&](auto& table, auto& of_table, auto& batch) {
    ferry::step(tables.exec, rule, table, of_table, bad, batch).wait();
  });
  alike([&](auto& table, auto&, auto& batch) {
    ferry::gather(tables.exec, table, ferry::make_plan(tables.exec, twice, rows + 1), batch).wait();
  });
  alike([&](auto& table, auto&, auto& batch) {
    ferry::scatter(tables.exec, table, std::vector{1}, batch).wait();
  });
  alike([&](auto& table, auto& of_table, auto& batch) {
    const ferry::optim::adam amsgrad{.lr = 0.1, .amsgrad = true};
    ferry::step(tables.exec, amsgrad, table, of_table, twice, batch).wait();
  });
  CHECK(state.steps() == 1);
  ferry::gather(tables.exec, hot, bad, mine, ferry::bounds::clamp{}).wait();
  ferry::gather(tables.exec, tables.twin, bad, twin_out, ferry::bounds::clamp{}).wait();
  CHECK(same_bits(take(mine), take(twin_out)));
  ferry::scatter(tables.exec, hot, bad, mine, ferry::bounds::skip{}, ferry::duplicates::mean{}).wait();
  ferry::scatter(tables.exec, tables.twin, bad, twin_out, ferry::bounds::skip{}, ferry::duplicates::mean{})
      .wait();
  tables.train(hot, state, twin_state);
  hot.flush(tables.exec).wait();
  CHECK(same_bits(take(tables.table), take(tables.twin)));
  CHECK(same_bits(take(state.field(0)), take(twin_state.field(0))));
}

TEST_CASE("a cached table without memory changes nothing", "[cache][life]") {
  pair_of_tables tables(2);
  {
    const budget_of_device none(64);
    CHECK_THROWS_AS(ferry::cached_table(tables.table, ferry::cache::first{50}), ferry::budget_exceeded);
  }
  ferry::cached_table hot(tables.table, ferry::cache::frequency{.rows = 30, .refresh = 2});
  auto state = ferry::optim::make_state(rule, hot);
  auto twin_state = ferry::optim::make_state(rule, tables.twin);
  auto warm = ferry::optim::make_state(rule, tables.twin);
  const auto ids = skewed<std::int32_t>(tables.random, 50, rows, 20, 15);
  auto grads = tables.batch(50);
  ferry::gather(tables.exec, hot, ids, grads).wait();
  const auto plan = ferry::make_plan(tables.exec, ids, rows);
  {
    const budget_of_device none(0);
    CHECK_THROWS_AS(ferry::step(tables.exec, rule, hot, state, plan, grads), ferry::budget_exceeded);
    CHECK(state.steps() == 0);
    const auto slots = hot.slots();
    CHECK_THROWS_AS(hot.resize(120), ferry::budget_exceeded);
    CHECK(hot.slots() == slots);
  }
  for (int batch = 0; batch < 6; ++batch) tables.train(hot, state, twin_state);
  for (const std::size_t most : {120, 0, 7, 60}) {
    hot.resize(most);
    CHECK(hot.slots() >= most);
    for (int batch = 0; batch < 3; ++batch) tables.train(hot, state, twin_state);
  }
  CHECK(cached_rows(hot).size() > 20);  // the counts have survived
  CHECK(hot.statistics().hits > 0);
  hot.flush(tables.exec).wait();
  CHECK(same_bits(take(tables.table), take(tables.twin)));
  CHECK(same_bits(take(state.field(1)), take(twin_state.field(1))));
}

TEST_CASE("states come and go while a table is cached", "[cache][life]") {
  pair_of_tables tables(3);
  {
    ferry::cached_table hot(tables.table, ferry::cache::frequency{.rows = 40, .refresh = 1});
    auto state = ferry::optim::make_state(rule, hot);
    auto twin_state = ferry::optim::make_state(rule, tables.twin);
    for (int round = 0; round < 3; ++round) {
      auto brief = ferry::optim::make_state(rule, hot);
      auto twin = ferry::optim::make_state(rule, tables.twin);
      for (int batch = 0; batch < 3; ++batch) {
        tables.train(hot, state, twin_state);
        tables.train(hot, brief, twin);
      }
      auto moved = std::move(brief);
      tables.train(hot, moved, twin);
      if (round == 1) hot.flush(tables.exec).wait();
      if (round == 1) CHECK(same_bits(take(moved.field(0)), take(twin.field(0))));
    }
    auto new_table =
        make<ferry::mapped_space>("another", rows, width, values<float>(tables.random, rows * width));
    ferry::cached_table second(new_table, ferry::cache::first{3});
    auto grads = tables.batch(1);
    CHECK_THROWS_MATCHES(ferry::step(tables.exec, rule, second, state, std::vector{0}, grads),
                         ferry::invalid_argument,
                         MessageMatches(ContainsSubstring("would not see this write")));
    auto ends = std::move(state);
    tables.train(hot, ends, twin_state);
  }
  CHECK(same_bits(take(tables.table), take(tables.twin)));
}

TEST_CASE("caches of tables without bytes exchange nothing", "[cache][life]") {
  const exec_space exec;
  ferry::tensor<float, ferry::mapped_space> table("table", 40, 0);
  ferry::cached_table hot(table, ferry::cache::frequency{.rows = 5, .refresh = 1});
  ferry::tensor<float, ferry::device_space> out("out", 3, 0);
  for (int batch = 0; batch < 6; ++batch) ferry::gather(exec, hot, std::vector{1, 39, 1}, out).wait();
  CHECK(hot.slots() == 0);
  CHECK(hot.statistics().refreshes == 0);
  CHECK_THROWS_AS(ferry::gather(exec, hot, std::vector{1, 40, 1}, out).wait(), ferry::out_of_range);
}

TEST_CASE("tables and caches end in any order", "[cache][life]") {
  pair_of_tables tables(4);
  std::optional<ferry::cached_table<table_type, ferry::cache::first>> hot;
  hot.emplace(tables.table, ferry::cache::first{20});
  auto grads = tables.batch(1);
  ferry::scatter(tables.exec, *hot, std::vector{3}, grads).wait();
  ferry::ticket unwaited;  // outlives the table: a ticket does not hide that the table was destroyed
  {
    table_type moved = std::move(tables.table);
    ferry::gather(tables.exec, *hot, std::vector{3}, grads).wait();
    hot->flush(tables.exec).wait();
    CHECK(moved(3, 0) == take(grads)[0]);
    unwaited = ferry::scatter(tables.exec, *hot, std::vector{4}, grads);
    tables.exec.fence("ferry_test::scatter");
  }
  CHECK_THROWS_MATCHES(ferry::gather(tables.exec, *hot, std::vector{3}, grads), ferry::invalid_argument,
                       MessageMatches(ContainsSubstring("'table'") && ContainsSubstring("was destroyed")));
  CHECK_THROWS_AS(hot->flush(tables.exec), ferry::invalid_argument);
  hot.reset();  // nothing to write to

  // Assignment ends the cache that was there.
  ferry::cached_table first(tables.twin, ferry::cache::first{10});
  auto next = make<ferry::mapped_space>("next", rows, width, values<float>(tables.random, rows * width));
  ferry::scatter(tables.exec, first, std::vector{5}, grads).wait();
  first = ferry::cached_table(next, ferry::cache::first{4});
  CHECK(tables.twin(5, 1) == take(grads)[1]);
  CHECK(first.label() == "next");
  CHECK(first.rank() == 2);
  CHECK(first.extent(0) == rows);
  CHECK(first.extent(1) == width);
  CHECK(first.extent(2) == 1);
  CHECK(first.size() == rows * width);
}

TEST_CASE("threads share a cached table", "[cache][life][threads]") {
  pair_of_tables tables(5);
  // A host's pool of one thread can't be shared out.
  const bool is_shared_out = !ferry::HostExecutionSpace<exec_space> || tables.exec.concurrency() > 1;
  const auto instances = is_shared_out
                             ? Kokkos::Experimental::partition_space(tables.exec, std::vector<int>(2, 1))
                             : std::vector<exec_space>(2, tables.exec);
  {
    ferry::cached_table hot(tables.table, ferry::cache::frequency{.rows = 25, .refresh = 1});
    // Each thread has rows of its own, so the order of the threads changes no bits.
    std::vector<std::vector<std::int32_t>> ids(2);
    std::vector<table_type> grads;
    for (std::size_t t = 0; t < 2; ++t) {
      for (int p = 0; p < 40; ++p)
        ids[t].push_back(static_cast<std::int32_t>(2 * (tables.random() % (rows / 2)) + t));
      grads.push_back(
          make<ferry::mapped_space>("grads", 40, width, values<float>(tables.random, 40 * width)));
    }
    const auto work = [&](std::size_t t) {
      for (int call = 0; call < 30; ++call) {
        ferry::tensor<float, ferry::device_space> out("out", 40, width);
        ferry::scatter_add(instances[t], hot, ids[t], grads[t]).detach();
        ferry::gather(instances[t], hot, ids[t], out).wait();
        if (call % 10 == 9) hot.flush(instances[t]).detach();
      }
    };
    std::thread second_thread(work, 1);
    work(0);
    second_thread.join();
    for (int call = 0; call < 30; ++call)
      for (std::size_t t = 0; t < 2; ++t)
        ferry::scatter_add(tables.exec, tables.twin, ids[t], grads[t]).wait();
    CHECK(hot.statistics().hits + hot.statistics().misses == 2 * 2 * 30 * 40);
  }
  CHECK(same_bits(take(tables.table), take(tables.twin)));
}

}  // namespace ferry_test::life_test
