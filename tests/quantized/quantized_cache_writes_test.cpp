// SPDX-License-Identifier: Apache-2.0
#include "cache/cache_kit.hpp"
#include "quantized.hpp"
#include "support/test.hpp"

#include <ferry/cache.hpp>
#include <ferry/quantized.hpp>

/// Writes to quantized tables behind a cache: the bytes of a table without one.
namespace ferry_test::quantized_cache_writes_test {

namespace quantization = ferry::quantization;
namespace duplicates = ferry::duplicates;
using by_rows = quantization::per_row<quantization::e4m3>;

/// A table behind a cache, and one without.
template <class Q, class Space, class ScaleSpace>
struct twins {
  exec_space exec;
  std::size_t rows, width;
  ferry::quantized_tensor<Q, Space, ScaleSpace> table, plain;
  ferry::cached_table<ferry::quantized_tensor<Q, Space, ScaleSpace>, ferry::cache::frequency> hot;

  twins(std::mt19937_64& random, std::size_t row_count, std::size_t columns, std::size_t cached,
        std::size_t refresh = 2)
      : rows(row_count),
        width(columns),
        table(encoded(random)),
        plain("plain", rows, width),
        hot(copied(table, plain), ferry::cache::frequency{.rows = cached, .refresh = refresh}) {}

  ferry::quantized_tensor<Q, Space, ScaleSpace> encoded(std::mt19937_64& random) const {
    ferry::quantized_tensor<Q, Space, ScaleSpace> codes("table", rows, width);
    if constexpr (Q::has_tensor_scale) codes.set_scale(0.37f);
    ferry::quantize(
        exec, make<ferry::mapped_space>("numbers", rows, width, numbers_for<float>(random, rows * width)),
        codes)
        .wait();
    return codes;
  }
  auto& copied(ferry::quantized_tensor<Q, Space, ScaleSpace>& source,
               ferry::quantized_tensor<Q, Space, ScaleSpace>& target) const {
    ferry::copy(exec, source, target).wait();
    return source;
  }
  /// Writes of the cache are in the table after a flush; before, gathers see them.
  void compare(std::mt19937_64& random) {
    const auto ids = indices<std::int64_t>(random, 40, rows);
    ferry::tensor<float, ferry::device_space> gathered_rows("gathered", ids.size(), width),
        expected("expected", ids.size(), width);
    ferry::gather(exec, hot, ids, gathered_rows).wait();
    ferry::gather(exec, plain, ids, expected).wait();
    CHECK(same_values(take(gathered_rows), take(expected)));
    hot.flush(exec).wait();
    CHECK(same(bytes_of(table), bytes_of(plain)));
  }
};

template <class Q, class Space, class ScaleSpace>
void compare_scatters(std::uint64_t salt, std::size_t width) {
  auto random = generator(salt);
  const std::size_t rows = 80;
  for (const std::size_t cached : cache_sizes(rows)) {
    CAPTURE(Q::name, Space::name, ScaleSpace::name, width, cached);
    twins<Q, Space, ScaleSpace> pair(random, rows, width, cached);
    auto& [exec, row_count, columns, table, plain, hot] = pair;
    std::uint64_t positions = 0;
    const auto scatter = [&](bool repeats, auto... policies) {
      const std::size_t n = random() % 8 == 0 ? 0 : 1 + random() % 60;
      const auto ids = repeats ? skewed<std::int64_t>(random, n, rows, 10, 7)
                               : unique_indices<std::int64_t>(random, n, rows);
      const auto batch = make<ferry::device_space>("batch", n, width, numbers_for<float>(random, n * width));
      ferry::scatter(exec, plain, ids, batch, policies...).wait();
      if (random() % 2 == 0)
        ferry::scatter(exec, hot, ids, batch, policies...).wait();
      else
        ferry::scatter(exec, hot, ferry::make_plan(exec, ids, hot), batch, policies...).wait();
      positions += n;
    };
    for (int turn = 0; turn < 3; ++turn) {
      scatter(true);
      scatter(true, duplicates::first{});
      scatter(true, duplicates::sum{}, ferry::path::direct{});
      const auto counted = hot.statistics();
      CHECK(counted.hits + counted.misses == positions);
      pair.compare(random);
      positions += 40;
      scatter(true, duplicates::mean{});
      scatter(false, duplicates::reject{});
      scatter(false, duplicates::assume_unique{}, ferry::path::ordered{});
      pair.compare(random);
      positions += 40;
    }
    if (cached > 1) CHECK(hot.statistics().hits > 0);
  }
}

template <class Q, class Space, class ScaleSpace, class Rule, class... Policies>
void compare_steps(std::uint64_t salt, std::size_t width, const Rule& rule, Policies... policies) {
  auto random = generator(salt);
  const std::size_t rows = 70;
  for (const std::size_t cached : cache_sizes(rows)) {
    CAPTURE(Q::name, Space::name, ScaleSpace::name, width, cached);
    twins<Q, Space, ScaleSpace> pair(random, rows, width, cached);
    auto& [exec, row_count, columns, table, plain, hot] = pair;
    auto expected = ferry::optim::make_state(rule, plain);
    auto state = ferry::optim::make_state(rule, hot);
    static_assert(std::is_same_v<typename decltype(state)::value_type, float>);
    expected.set_seed(5);
    state.set_seed(5);
    for (int turn = 0; turn < 7; ++turn) {
      const std::size_t n = turn == 3 ? 0 : turn == 5 ? rows : 1 + random() % 60;
      const auto ids = skewed<std::int64_t>(random, n, rows, 10, 7);
      const auto grads = make<ferry::device_space>("grads", n, width, numbers_for<float>(random, n * width));
      if (turn == 5) {
        ferry::step(exec, rule, plain, expected, grads, policies...).wait();
        ferry::step(exec, rule, hot, state, grads, policies...).wait();
      } else if (turn % 2 == 0) {
        ferry::step(exec, rule, plain, expected, ids, grads, policies...).wait();
        ferry::step(exec, rule, hot, state, ids, grads, policies...).wait();
      } else {
        const auto plan = ferry::make_plan(exec, ids, hot);
        ferry::step(exec, rule, plain, expected, plan, grads, policies...).wait();
        ferry::step(exec, rule, hot, state, plan, grads, policies...).wait();
      }
      if (turn == 4) hot.resize(cached / 2);
      pair.compare(random);
      CHECK(state.steps() == expected.steps());
      for (int f = 0; f < state.fields(); ++f) CHECK(take(state.field(f)) == take(expected.field(f)));
    }
  }
}

constexpr ferry::rounding::stochastic stochastic;

TEST_CASE("scatter behind a cache gives the bytes of a table without one", "[cache][quantized]") {
  using ferry::device_space, ferry::mapped_space, ferry::pinned_space;
  compare_scatters<quantization::mxfp8, pinned_space, device_space>(902, 96);
  compare_scatters<quantization::nvfp4, mapped_space, pinned_space>(904, 48);
  compare_scatters<by_rows, mapped_space, mapped_space>(906, 7);
  compare_scatters<six_bits, mapped_space, mapped_space>(907, 32);
}

TEST_CASE("a step behind a cache gives the bytes of a table without one", "[cache][quantized][optim]") {
  using ferry::device_space, ferry::mapped_space, ferry::pinned_space;
  const ferry::optim::adam adam{.lr = 0.1};
  const ferry::optim::sgd sgd{.lr = 0.5};
  compare_steps<quantization::mxfp8, mapped_space, mapped_space>(911, 96, adam, stochastic);
  compare_steps<quantization::nvfp4, pinned_space, device_space>(914, 48, sgd, stochastic);
  compare_steps<by_rows, mapped_space, mapped_space>(916, 7, ferry::optim::rowwise_adagrad{.lr = 0.1},
                                                     ferry::path::ordered{});
  compare_steps<by_rows, mapped_space, mapped_space>(917, 131, adam, ferry::step_count::per_row{});
}

TEST_CASE("writes behind a cache that exchanges its rows in parts", "[cache][quantized][optim]") {
  auto random = generator(918);
  const ferry::optim::adam rule{.lr = 0.1};
  const std::size_t rows = 90, width = 32;
  for (const std::size_t refresh : {4u, 8u, 16u, 40u}) {
    CAPTURE(refresh);
    twins<quantization::mxfp8, ferry::mapped_space, ferry::mapped_space> pair(random, rows, width, 20,
                                                                              refresh);
    auto& [exec, row_count, columns, table, plain, hot] = pair;
    auto expected = ferry::optim::make_state(rule, plain);
    auto state = ferry::optim::make_state(rule, hot);
    expected.set_seed(5);
    state.set_seed(5);
    std::uint64_t popular = 0;
    for (int turn = 0; turn < 120; ++turn) {
      if (turn % 20 == 0) popular = random() % rows;
      const std::size_t n = random() % 20;
      std::vector<std::int64_t> ids;
      for (std::size_t i = 0; i < n; ++i)
        ids.push_back(
            static_cast<std::int64_t>((popular + random() % (random() % 4 == 0 ? rows : 12)) % rows));
      const auto batch = make<ferry::device_space>("batch", n, width, numbers_for<float>(random, n * width));
      if (turn % 3 == 0) {
        ferry::scatter(exec, plain, ids, batch).wait();
        ferry::scatter(exec, hot, ids, batch).wait();
      } else {
        ferry::step(exec, rule, plain, expected, ids, batch, stochastic).wait();
        ferry::step(exec, rule, hot, state, ids, batch, stochastic).wait();
      }
      if (turn % 17 == 0) pair.compare(random);
    }
    pair.compare(random);
    for (int f = 0; f < state.fields(); ++f) CHECK(take(state.field(f)) == take(expected.field(f)));
    CHECK(hot.statistics().refreshes > 2);
    CHECK(hot.statistics().hits > 0);
  }
}

TEST_CASE("refused writes behind a cache leave rows as they are", "[cache][quantized]") {
  using q = quantization::mxfp8;
  auto random = generator(921);
  const std::size_t rows = 20, width = 32;
  twins<q, ferry::mapped_space, ferry::mapped_space> pair(random, rows, width, 9);
  auto& [exec, row_count, columns, table, plain, hot] = pair;
  const ferry::optim::sgd rule;
  auto state = ferry::optim::make_state(rule, hot);
  const auto batch = make<ferry::device_space>("batch", 3, width, numbers_for<float>(random, 3 * width));
  const std::vector<int> bad_indices{3, 20, 5}, repeats{3, 7, 3}, ids{1, 2, 3};
  const auto range = said<ferry::out_of_range>([&] { ferry::scatter(exec, hot, bad_indices, batch).wait(); });
  CHECK(has(range, "1 of 3"));
  CHECK(has(range, "20 x 32"));
  CHECK_THROWS_AS(ferry::step(exec, rule, hot, state, bad_indices, batch).wait(), ferry::out_of_range);
  const auto twice = said<ferry::invalid_argument>(
      [&] { ferry::scatter(exec, hot, repeats, batch, duplicates::reject{}).wait(); });
  CHECK(has(twice, "1 row"));
  CHECK(state.steps() == 0);
  pair.compare(random);
  // While slots are newer, the table itself is not read, and codes and scales are no operands.
  ferry::scatter(exec, plain, ids, batch).wait();
  ferry::scatter(exec, hot, ids, batch).wait();
  ferry::tensor<float, ferry::device_space> out("out", 3, width);
  CHECK_THROWS_AS(ferry::gather(exec, table, ids, out).wait(), ferry::invalid_argument);
  CHECK_THROWS_AS(ferry::scatter(exec, table, ids, batch).wait(), ferry::invalid_argument);
  pair.compare(random);
  ferry::gather(exec, table, ids, out).wait();
}

TEST_CASE("a cache that ends writes codes and scales back", "[cache][quantized]") {
  using q = quantization::nvfp4;
  auto random = generator(931);
  const exec_space exec;
  const std::size_t rows = 30, width = 32;
  auto bytes = random_codes<q>(random, rows, width);
  auto table = table_of<q, ferry::mapped_space>(bytes);
  auto plain = table_of<q, ferry::mapped_space>(bytes);
  const auto ids = indices<std::int64_t>(random, 40, rows);
  const auto batch = make<ferry::device_space>("batch", 40, width, numbers_for<float>(random, 40 * width));
  ferry::scatter(exec, plain, ids, batch).wait();
  {
    ferry::cached_table hot(table, ferry::cache::first{.rows = 12});
    ferry::scatter(exec, hot, ids, batch).wait();
  }
  CHECK(same(bytes_of(table), bytes_of(plain)));
}

}  // namespace ferry_test::quantized_cache_writes_test
