// SPDX-License-Identifier: Apache-2.0
#include "cache/cache_kit.hpp"

#include <ferry/cache/catch_up.hpp>
#include <ferry/cache/copy.hpp>
#include <ferry/cache/init.hpp>
#include <ferry/optim/records.hpp>
#include <ferry/optim/step.hpp>

#include <utility>

/// Cached optimizer records, whose state lies with the weights, next to records without a cache.
namespace ferry_test::records_test {

namespace {

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

}  // namespace

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

}  // namespace ferry_test::records_test
