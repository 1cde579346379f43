// SPDX-License-Identifier: Apache-2.0
#include "cache/cache_kit.hpp"

#include <ferry/cache.hpp>

/// Steps of all rows of cached tables have the bits of steps without a cache.
namespace ferry_test::dense_step_test {

namespace {

constexpr std::size_t rows = 90, width = 12;

/// A batch between two steps moves rows into the cache.
template <class Rule, class... Policies>
void compare(const Rule& rule, std::size_t cached, Policies... policies) {
  CAPTURE(cached, Rule::name);
  auto random = generator(4100 + cached);
  const exec_space exec;
  const auto start = values<float>(random, rows * width);
  auto table = make<ferry::mapped_space>("table", rows, width, start);
  auto twin = make<ferry::mapped_space>("twin", rows, width, start);
  ferry::cached_table hot(table, ferry::cache::frequency{.rows = cached, .refresh = 2});
  auto state = ferry::optim::make_state<ferry::mapped_space>(rule, hot);
  auto twin_state = ferry::optim::make_state<ferry::mapped_space>(rule, twin);
  for (int turn = 0; turn < 12; ++turn) {
    CAPTURE(turn);
    const auto ids = skewed<std::int64_t>(random, 40, rows, turn < 6 ? 0 : rows / 2, rows / 8 + 1);
    const auto few = make<ferry::device_space>("few", 40, width, values<float>(random, 40 * width));
    const auto grads = make<ferry::device_space>("grads", rows, width, values<float>(random, rows * width));
    ferry::step(exec, rule, hot, state, ids, few, policies...).wait();
    ferry::step(exec, rule, twin, twin_state, ids, few, policies...).wait();
    ferry::step(exec, rule, hot, state, grads, policies...).wait();
    ferry::step(exec, rule, twin, twin_state, grads, policies...).wait();
    auto batch = make<ferry::device_space>("batch", 40, width, std::vector<float>(40 * width, -1.0f));
    auto expected = make<ferry::device_space>("expected", 40, width, std::vector<float>(40 * width, -2.0f));
    ferry::gather(exec, hot, ids, batch).wait();
    ferry::gather(exec, twin, ids, expected).wait();
    REQUIRE(same_bits(take(batch), take(expected)));
  }
  CHECK(state.steps() == 24);
  hot.flush(exec).wait();
  CHECK(same_bits(take(table), take(twin)));
  CHECK(same_bits(take(state.field(0)), take(twin_state.field(0))));
}

}  // namespace

TEST_CASE("steps of all rows of cached tables", "[cache][step][dense]") {
  for (const std::size_t cached : {std::size_t{1}, rows / 4, rows}) {
    compare(ferry::optim::adam{.lr = 0.05}, cached);
    compare(ferry::optim::sgd{.lr = 0.1, .momentum = 0.9}, cached, ferry::step_count::catch_up{});
  }
}

TEST_CASE("a step of all rows of cached records", "[cache][step][dense]") {
  const exec_space exec;
  auto random = generator(4200);
  const ferry::optim::adam rule{.lr = 0.05};
  const auto start = make<ferry::device_space>("start", rows, width, values<float>(random, rows * width));
  auto records = ferry::optim::make_records<float, ferry::mapped_space>(rule, "records", rows, width);
  auto twin = ferry::optim::make_records<float, ferry::mapped_space>(rule, "twin", rows, width);
  ferry::copy(exec, start, records.table()).wait();
  ferry::copy(exec, start, twin.table()).wait();
  ferry::cached_table hot(records, ferry::cache::frequency{.rows = 20, .refresh = 1});
  for (int turn = 0; turn < 5; ++turn) {
    const auto ids = skewed<std::int64_t>(random, 40, rows, 0, rows / 8 + 1);
    const auto few = make<ferry::device_space>("few", 40, width, values<float>(random, 40 * width));
    const auto grads = make<ferry::device_space>("grads", rows, width, values<float>(random, rows * width));
    ferry::step(exec, rule, hot, ids, few).wait();
    ferry::step(exec, rule, twin, ids, few).wait();
    ferry::step(exec, rule, hot, grads).wait();
    ferry::step(exec, rule, twin, grads).wait();
  }
  hot.flush(exec).wait();
  ferry::tensor<float, ferry::mapped_space> weights("read", rows, width), expected("expected", rows, width);
  ferry::copy(exec, records.table(), weights).wait();
  ferry::copy(exec, twin.table(), expected).wait();
  CHECK(same_bits(take(weights), take(expected)));
}

}  // namespace ferry_test::dense_step_test
