// SPDX-License-Identifier: Apache-2.0
#include "cache/cache_kit.hpp"

#include <ferry/bags.hpp>
#include <ferry/cache.hpp>
#include <ferry/optim/rules/adagrad.hpp>

#include <cstdint>
#include <vector>

/// Verbs on a cached table with the paths and policies of an ordinary one, which is the oracle.
namespace ferry_test::paths_test {

namespace {

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
void gathers(std::uint64_t salt, Policies... policies) {
  on_both<Space>(salt, [&](auto& tables, const auto& table, auto& batch) {
    ferry::gather(tables.exec, table, tables.indices, batch, policies...).wait();
  });
  on_both<Space, double>(salt + 1, [&](auto& tables, const auto& table, auto& batch) {
    ferry::gather(tables.exec, table, tables.plan, batch, policies...).wait();
  });
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
void scatters(std::uint64_t salt, Policies... policies) {
  on_both<Space>(salt, [&](auto& tables, auto& table, auto& batch) {
    ferry::scatter(tables.exec, table, tables.indices, batch, policies...).wait();
    ferry::scatter(tables.exec, table, tables.plan, batch, ferry::duplicates::first{}, policies...).wait();
    ferry::scatter(tables.exec, table, tables.indices, batch, ferry::duplicates::mean{}, policies...).wait();
    ferry::scatter(tables.exec, table, tables.different, batch, ferry::duplicates::assume_unique{},
                   policies...)
        .wait();
    ferry::scatter_add(tables.exec, table, tables.plan, batch, policies...).wait();
    ferry::scatter_add(tables.exec, table, tables.different, batch, ferry::duplicates::assume_unique{},
                       policies...)
        .wait();
  });
  on_both<Space>(salt + 1, [&](auto& tables, auto& table, auto& batch) {
    auto some = tables.different;
    some[3] = 120;
    CHECK_THROWS_AS(ferry::scatter(tables.exec, table, some, batch, policies...).wait(), ferry::out_of_range);
    CHECK_THROWS_AS(
        ferry::scatter_add(tables.exec, table, some, batch, ferry::duplicates::assume_unique{}, policies...)
            .wait(),
        ferry::out_of_range);
  });
}

template <class Space, class Rule, class... Policies>
void steps(const Rule& rule, std::uint64_t salt, Policies... policies) {
  on_both<Space>(salt, [&](auto& tables, auto& table, auto& batch) {
    auto state = ferry::optim::make_state(rule, tables.plain);
    for (int call = 0; call < 3; ++call)
      ferry::step(tables.exec, rule, table, state, tables.indices, batch, policies...).wait();
    ferry::step(tables.exec, rule, table, state, tables.plan, batch, policies...).wait();
    tables.hot.flush(tables.exec).wait();
  });
}

template <class Space>
void all_paths(std::uint64_t salt) {
  gathers<Space>(salt += 10);
  gathers<Space>(salt += 10, ferry::path::direct{});
  gathers<Space>(salt += 10, ferry::path::ordered{});
  gathers<Space>(salt += 10, ferry::path::staged{});
  skipping_gathers<Space>(salt += 10, ferry::path::direct{});
  skipping_gathers<Space>(salt += 10, ferry::path::ordered{});
  skipping_gathers<Space>(salt += 10, ferry::path::staged{});
  scatters<Space>(salt += 10, ferry::path::direct{});
  scatters<Space>(salt += 10, ferry::path::ordered{});
}

}  // namespace

TEST_CASE("paths of gather and scatter on cached tables", "[cache][paths]") {
  all_paths<ferry::mapped_space>(51000);
  all_paths<ferry::pinned_space>(52000);
}

TEST_CASE("gather_unique from cached tables", "[cache][paths]") {
  on_both<ferry::mapped_space>(53000, [](auto& tables, const auto& table, auto& batch) {
    ferry::gather_unique(tables.exec, table, tables.indices, batch).wait();
  });
  on_both<ferry::pinned_space, double>(53010, [](auto& tables, const auto& table, auto& batch) {
    ferry::gather_unique(tables.exec, table, tables.plan, batch).wait();
  });
  on_both<ferry::mapped_space>(53020, [](auto& tables, const auto& table, auto& batch) {
    auto some = tables.indices;
    some[7] = -1;
    ferry::gather_unique(tables.exec, table, some, batch, ferry::bounds::skip{}).wait();
    CHECK_THROWS_AS(ferry::gather_unique(tables.exec, table, some, batch).wait(), ferry::out_of_range);
  });
}

TEST_CASE("paths and policies of steps on cached tables", "[cache][paths]") {
  using ferry::mapped_space;
  const ferry::optim::adam adam;
  steps<mapped_space>(adam, 54000, ferry::path::ordered{});
  steps<mapped_space>(adam, 54010, ferry::path::ordered{}, ferry::step_count::per_row{});
  steps<mapped_space>(ferry::optim::rowwise_adagrad{}, 54020, ferry::path::ordered{});
}

TEST_CASE("sums in any order are sums in order on cached tables", "[cache][paths]") {
  for (const std::size_t cached : {0, 17}) {
    twins<ferry::mapped_space> tables(8, cached, 54100);
    const auto batch = tables.floats();
    const ferry::optim::sgd rule{.lr = 0.1};
    auto state = ferry::optim::make_state(rule, tables.plain),
         second_state = ferry::optim::make_state(rule, tables.plain);
    ferry::scatter_add(tables.exec, tables.hot, tables.indices, batch, ferry::duplicates::sum_any_order{})
        .wait();
    ferry::scatter_add(tables.exec, tables.plain, tables.indices, batch).wait();
    ferry::step(tables.exec, rule, tables.hot, state, tables.indices, batch,
                ferry::duplicates::sum_any_order{})
        .wait();
    ferry::step(tables.exec, rule, tables.plain, second_state, tables.indices, batch).wait();
    CHECK(tables.agree());
  }
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

}  // namespace ferry_test::paths_test
