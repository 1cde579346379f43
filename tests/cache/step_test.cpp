// SPDX-License-Identifier: Apache-2.0
#include "cache/cache_kit.hpp"

#include <ferry/cache.hpp>
#include <ferry/optim/transforms.hpp>

/// Steps on cached tables whose state is cached with the rows.
namespace ferry_test::step_test {

template <class State>
std::vector<std::vector<typename State::value_type>> fields_of(const State& state) {
  std::vector<std::vector<typename State::value_type>> result;
  for (int f = 0; f < state.fields(); ++f) result.push_back(take(state.field(f)));
  for (int f = 0; f < State::row_fields; ++f) result.push_back(take(state.row_field_at(f)));
  return result;
}

template <class T, class StateSpace, class Rule, class... Policies>
void random_steps(const Rule& rule, std::size_t rows, std::size_t width, std::size_t cached, int refresh,
                  std::uint64_t salt, Policies... policies) {
  CAPTURE(rows, width, cached, refresh, salt);
  auto random = generator(salt);
  const exec_space exec;
  const auto start = values<T>(random, rows * width);
  auto table = make<ferry::mapped_space>("table", rows, width, start);
  auto twin = make<ferry::mapped_space>("twin", rows, width, start);
  {
    ferry::cached_table hot(table, ferry::cache::frequency{.rows = cached, .refresh = refresh});
    auto state = ferry::optim::make_state<StateSpace>(rule, hot);
    auto twin_state = ferry::optim::make_state<StateSpace>(rule, twin);
    const int calls = refresh < 4 ? 16 : 48;
    for (int call = 0; call < calls; ++call) {
      CAPTURE(call);
      const std::size_t n = random() % 70;
      const auto ids = skewed<std::int64_t>(random, n, rows, call < calls / 2 ? 0 : rows / 2, rows / 8 + 1);
      auto grads = make<ferry::device_space>("grads", n, width, values<float>(random, n * width));
      auto batch = make<ferry::device_space>("batch", n, width, values<T>(random, n * width));
      auto twin_out = make<ferry::device_space>("its", n, width, values<T>(random, n * width));
      const auto plan = ferry::make_plan(exec, ids, rows);
      ferry::gather(exec, hot, plan, batch).wait();
      ferry::gather(exec, twin, plan, twin_out).wait();
      REQUIRE(same_bits(take(batch), take(twin_out)));
      if (call % 3 == 2) {
        ferry::step(exec, rule, hot, state, ids, grads, policies...).wait();
        ferry::step(exec, rule, twin, twin_state, ids, grads, policies...).wait();
      } else {
        ferry::step(exec, rule, hot, state, plan, grads, policies...).wait();
        ferry::step(exec, rule, twin, twin_state, plan, grads, policies...).wait();
      }
      if (call % 6 == 4) ferry::scatter(exec, hot, plan, batch).wait();
      if (call % 6 == 4) ferry::scatter(exec, twin, plan, batch).wait();
    }
    CHECK(state.steps() == calls);
    hot.flush(exec).wait();
    CHECK(same_bits(take(table), take(twin)));
    const auto mine = fields_of(state), twin_fields = fields_of(twin_state);
    REQUIRE(mine.size() == twin_fields.size());
    for (std::size_t f = 0; f < mine.size(); ++f) CHECK(same_bits(mine[f], twin_fields[f]));
    if (state.row_steps().rows() != 0)
      CHECK(same_bits(take(state.row_steps()), take(twin_state.row_steps())));
  }
  CHECK(same_bits(take(table), take(twin)));
}

template <class T, class Rule, class... Policies>
void all_sizes(const Rule& rule, std::uint64_t salt, Policies... policies) {
  for (const std::size_t cached : cache_sizes(180)) {
    random_steps<T, ferry::mapped_space>(rule, 180, 16, cached, 1, ++salt, policies...);
    random_steps<T, ferry::mapped_space>(rule, 180, 7, cached, 3, ++salt, policies...);
    random_steps<T, ferry::mapped_space>(rule, 180, 8, cached, 8, ++salt, policies...);
  }
}

TEST_CASE("sgd with momentum on cached tables", "[cache][step]") {
  all_sizes<float>(ferry::optim::sgd{.lr = 0.1, .momentum = 0.9}, 1000);
  all_sizes<ferry::half_t>(ferry::optim::sgd{.lr = 0.1}, 1100, ferry::rounding::stochastic{});
}

TEST_CASE("adam on cached tables", "[cache][step]") {
  all_sizes<float>(ferry::optim::adam{.lr = 0.05, .weight_decay = 0.01}, 2000);
  all_sizes<float>(ferry::optim::adam{.lr = 0.05}, 2100, ferry::step_count::per_row{});
  all_sizes<float>(ferry::optim::adam{.lr = 0.05}, 2200, ferry::step_count::catch_up{});
}

TEST_CASE("rowwise_adagrad and adagrad on cached tables", "[cache][step]") {
  all_sizes<float>(ferry::optim::rowwise_adagrad{.lr = 0.1}, 3000);
  all_sizes<double>(ferry::optim::adagrad{.lr = 0.1}, 3100);
}

TEST_CASE("state in device memory is not cached", "[cache][step]") {
  random_steps<float, ferry::device_space>(ferry::optim::adam{.lr = 0.05}, 90, 12, 20, 2, 4000);
}

TEST_CASE("factors of rows stay those of the rows", "[cache][step][transforms]") {
  auto random = generator(4100);
  const std::size_t rows = 180;
  auto rates = make<ferry::device_space>("rates", values<float>(random, rows));
  const auto rule = ferry::optim::chain(ferry::optim::adagrad{.lr = 0.1}, ferry::optim::row_rates(rates));
  random_steps<float, ferry::mapped_space>(rule, rows, 16, 30, 1, 4200);
}

/// Numbers whose sums are exact in any order.
std::vector<float> small_numbers(std::mt19937_64& random, std::size_t count) {
  std::vector<float> result(count);
  for (float& entry : result) entry = static_cast<float>(static_cast<int>(random() % 17) - 8);
  return result;
}

// The table lies in host memory, where a device adds in order.
TEST_CASE("additions in any order on cached tables are sums", "[cache][step][any_order]") {
  auto random = generator(4300);
  const exec_space exec;
  const std::size_t rows = 60, width = 7;
  const auto start = small_numbers(random, rows * width);
  auto table = make<ferry::mapped_space>("table", rows, width, start);
  auto twin = make<ferry::mapped_space>("twin", rows, width, start);
  {
    ferry::cached_table hot(table, ferry::cache::first{20});
    const auto rule = ferry::optim::sgd{.lr = 0.5, .momentum = 0.5};
    auto state = ferry::optim::make_state(rule, hot);
    auto twin_state = ferry::optim::make_state(rule, twin);
    for (int call = 0; call < 4; ++call) {
      const std::size_t n = 50;
      const auto ids = skewed<std::int32_t>(random, n, rows, 3, 2);
      const auto grads = make<ferry::device_space>("grads", n, width, small_numbers(random, n * width));
      ferry::step(exec, rule, hot, state, ids, grads, ferry::duplicates::sum_any_order{}).wait();
      ferry::step(exec, rule, twin, twin_state, ids, grads).wait();
      ferry::scatter_add(exec, hot, ids, grads, ferry::duplicates::sum_any_order{}).wait();
      ferry::scatter_add(exec, twin, ids, grads).wait();
    }
  }
  CHECK(same_bits(take(table), take(twin)));
}

}  // namespace ferry_test::step_test
