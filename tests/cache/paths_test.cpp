// SPDX-License-Identifier: Apache-2.0
#include "bags/bags.hpp"
#include "cache/cache_kit.hpp"

#include <ferry/bags.hpp>
#include <ferry/cache.hpp>
#include <ferry/cache/verbs.hpp>
#include <ferry/optim/rules/adagrad.hpp>

#include <cstdint>
#include <vector>

namespace ferry_test::paths_test {

// Verbs on a cached table with the paths and policies of an ordinary one, which is the oracle.

template <class Space>
struct twins {
  static constexpr std::size_t rows = 120, n = 75;

  exec_space exec;
  std::mt19937_64 random;
  std::size_t width;
  std::vector<float> start;
  ferry::tensor<float, Space> backing, plain;
  ferry::cached_table<ferry::tensor<float, Space>, ferry::cache::frequency> hot;
  std::vector<std::int64_t> indices, different;
  ferry::row_plan plan;

  twins(std::size_t columns, std::size_t cached, std::uint64_t salt)
      : random(generator(salt)),
        width(columns),
        start(values<float>(random, rows * columns)),
        backing(make<Space>("table", rows, columns, start)),
        plain(make<Space>("twin", rows, columns, start)),
        hot(backing, ferry::cache::frequency{.rows = cached, .refresh = 2}),
        indices(skewed<std::int64_t>(random, n, rows, 5, 12)),
        different(unique_indices<std::int64_t>(random, n, rows)),
        plan(ferry::make_plan(exec, indices, rows)) {
    // The cache has hot rows, some of them newer than the table.
    const auto batch = floats();
    for (int call = 0; call < 4; ++call) {
      ferry::scatter_add(exec, hot, plan, batch).wait();
      ferry::scatter_add(exec, plain, plan, batch).wait();
    }
  }
  ferry::tensor<float, ferry::device_space> floats() {
    return make<ferry::device_space>("batch", n, width, values<float>(random, n * width));
  }
  std::vector<std::int32_t> pairs() const {
    std::vector<std::int32_t> offsets;
    for (std::size_t b = 0; b < n; ++b) offsets.push_back(static_cast<std::int32_t>(std::min(2 * b, n)));
    return offsets;
  }
  bool agree() {
    hot.flush(exec).wait();
    return same_bits(take(backing), take(plain));
  }
};

/// Calls verb(tables, table, batch) for both tables: batches and tables must agree.
template <class Space, class Out = float, class Verb>
void on_both(std::uint64_t salt, const Verb& verb) {
  for (const std::size_t width : {5, 16})
    for (const std::size_t cached : {std::size_t{0}, std::size_t{17}, twins<Space>::rows}) {
      CAPTURE(width, cached, salt);
      twins<Space> tables(width, cached, salt);
      const auto start = values<Out>(tables.random, tables.n * width);
      auto batch = make<ferry::device_space>("batch", tables.n, width, start);
      auto second = make<ferry::device_space>("other", tables.n, width, start);
      verb(tables, tables.hot, batch);
      verb(tables, tables.plain, second);
      CHECK(same_bits(take(batch), take(second)));
      CHECK(tables.agree());
    }
}

template <class Space, class... Policies>
void skipping_gathers(std::uint64_t salt, Policies... policies) {
  on_both<Space>(salt, [&](auto& tables, const auto& table, auto& batch) {
    auto some = tables.indices;
    some[3] = -1;
    some[40] = 120;
    ferry::gather(tables.exec, table, some, batch, ferry::bounds::skip{}, policies...).wait();
    ferry::gather(tables.exec, table, some, batch, ferry::bounds::clamp{}, policies...).wait();
    CHECK_THROWS_AS(ferry::gather(tables.exec, table, some, batch, policies...).wait(), ferry::out_of_range);
  });
}

template <class Space, class... Policies>
void refused_scatters(std::uint64_t salt, Policies... policies) {
  on_both<Space>(salt, [&](auto& tables, auto& table, auto& batch) {
    auto some = tables.different;
    some[3] = 120;
    CHECK_THROWS_AS(ferry::scatter(tables.exec, table, some, batch, policies...).wait(), ferry::out_of_range);
    CHECK_THROWS_AS(
        ferry::scatter_add(tables.exec, table, some, batch, ferry::duplicates::assume_unique{}, policies...)
            .wait(),
        ferry::out_of_range);
  });
}

// Good batches take each path in matrix_test.cpp.
TEST_CASE("bad indices of cached tables on every path", "[cache][paths]") {
  using ferry::mapped_space, ferry::pinned_space;
  skipping_gathers<mapped_space>(51050, ferry::path::direct{});
  skipping_gathers<pinned_space>(51060, ferry::path::ordered{});
  skipping_gathers<mapped_space>(51070, ferry::path::staged{});
  refused_scatters<mapped_space>(51080, ferry::path::direct{});
  refused_scatters<pinned_space>(51090, ferry::path::ordered{});
  on_both<mapped_space>(53020, [](auto& tables, const auto& table, auto& batch) {
    auto some = tables.indices;
    some[7] = -1;
    ferry::gather_unique(tables.exec, table, some, batch, ferry::bounds::skip{}).wait();
    CHECK_THROWS_AS(ferry::gather_unique(tables.exec, table, some, batch).wait(), ferry::out_of_range);
  });
}

TEST_CASE("bags of cached tables find maxima and gradients of weights in cached rows", "[cache][bags]") {
  const ferry::optim::adam adam;
  on_both<ferry::mapped_space>(55000, [&](auto& tables, auto& table, auto& batch) {
    auto state = ferry::optim::make_state(adam, tables.plain);
    ferry::step_bags(tables.exec, adam, table, state, tables.indices, tables.pairs(), batch,
                     ferry::pooling::max{})
        .wait();
    tables.hot.flush(tables.exec).wait();
  });
  std::vector<std::vector<float>> results;
  on_both<ferry::mapped_space>(55010, [&](auto& tables, auto& table, auto& batch) {
    auto state = ferry::optim::make_state(adam, tables.plain);
    const std::vector<float> weights(tables.n, 0.75f);
    ferry::tensor<float, ferry::device_space> gradients("gradients", tables.n);
    ferry::step_bags(tables.exec, adam, table, state, tables.indices, tables.pairs(), batch, weights,
                     gradients)
        .wait();
    results.push_back(take(gradients));
    tables.hot.flush(tables.exec).wait();
  });
  for (std::size_t i = 0; i + 1 < results.size(); i += 2) CHECK(same_bits(results[i], results[i + 1]));
}

// Bags of rows of cached tables.

template <class Pooling, class... Policies>
void random_bags(std::uint64_t salt, Policies... policies) {
  CAPTURE(salt);
  constexpr std::size_t rows = 160, width = 12;
  auto random = generator(salt);
  const exec_space exec;
  const ferry::optim::adagrad rule{.lr = 0.1};
  const auto start = values<float>(random, rows * width);
  auto table = make<ferry::mapped_space>("table", rows, width, start);
  auto twin = make<ferry::mapped_space>("twin", rows, width, start);
  ferry::cached_table hot(table, ferry::cache::frequency{.rows = 20, .refresh = 2});
  auto state = ferry::optim::make_state(rule, hot);
  auto twin_state = ferry::optim::make_state(rule, twin);
  for (int call = 0; call < 12; ++call) {
    const auto offsets = as_offsets<std::int64_t>(bag_offsets(random, 11, 9));
    const auto n = static_cast<std::size_t>(offsets.back());
    const auto ids = skewed<std::int64_t>(random, n, rows, 5, 15);
    const auto plan = ferry::make_plan(exec, ids, rows);
    const std::size_t bags = offsets.size() - 1;
    auto mine = make<ferry::device_space>("mine", bags, width, std::vector<float>(bags * width, -7.0f));
    auto twin_out = make<ferry::device_space>("its", bags, width, std::vector<float>(bags * width, -8.0f));
    auto grads = make<ferry::device_space>("grads", bags, width, values<float>(random, bags * width));
    const Pooling pooling;
    if (call % 2 == 0) {
      ferry::gather_bags(exec, hot, ids, offsets, mine, pooling, policies...).wait();
      ferry::gather_bags(exec, twin, ids, offsets, twin_out, pooling, policies...).wait();
      ferry::step_bags(exec, rule, hot, state, ids, offsets, grads, pooling, policies...).wait();
      ferry::step_bags(exec, rule, twin, twin_state, ids, offsets, grads, pooling, policies...).wait();
    } else {
      ferry::gather_bags(exec, hot, plan, offsets, mine, pooling).wait();
      ferry::gather_bags(exec, twin, plan, offsets, twin_out, pooling).wait();
      ferry::step_bags(exec, rule, hot, state, plan, offsets, grads, pooling).wait();
      ferry::step_bags(exec, rule, twin, twin_state, plan, offsets, grads, pooling).wait();
    }
    REQUIRE(same_bits(take(mine), take(twin_out)));
    if constexpr (!Pooling::selects) {
      auto weights = make<ferry::device_space>("weights", values<float>(random, n));
      ferry::gather_bags(exec, hot, ids, offsets, mine, weights, pooling).wait();
      ferry::gather_bags(exec, twin, ids, offsets, twin_out, weights, pooling).wait();
      ferry::step_bags(exec, rule, hot, state, plan, offsets, grads, weights, pooling).wait();
      ferry::step_bags(exec, rule, twin, twin_state, plan, offsets, grads, weights, pooling).wait();
    } else {
      ferry::tensor<std::int64_t, ferry::device_space> positions("at", bags, width),
          twin_positions("there", bags, width);
      ferry::gather_bags(exec, hot, ids, offsets, mine, positions, pooling).wait();
      ferry::gather_bags(exec, twin, ids, offsets, twin_out, twin_positions, pooling).wait();
      CHECK(take(positions) == take(twin_positions));
    }
    REQUIRE(same_bits(take(mine), take(twin_out)));
  }
  CHECK(hot.statistics().hits > 0);
  hot.flush(exec).wait();
  CHECK(same_bits(take(table), take(twin)));
  CHECK(same_bits(take(state.field(0)), take(twin_state.field(0))));
}

TEST_CASE("bags of rows of a cached table", "[cache][bags]") {
  random_bags<ferry::pooling::sum>(1);
  random_bags<ferry::pooling::mean>(2, ferry::bounds::skip{});
  random_bags<ferry::pooling::max>(3);
}

}  // namespace ferry_test::paths_test
