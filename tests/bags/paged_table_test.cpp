// SPDX-License-Identifier: Apache-2.0
#include "bags/paged_table.hpp"
#include "support/oracle.hpp"
#include "support/test.hpp"

#include <ferry/bags.hpp>

/// A fifth kind of table next to an ordinary one: the same verbs on both must give the same bits.
namespace ferry_test::paged_table_test {

template <class T, class Space>
paged_table<T, Space> in_pages(const std::vector<T>& values, std::int64_t rows, std::int64_t width,
                               std::int64_t rows_per_page) {
  paged_table<T, Space> table;
  table.rows = rows;
  table.width = width;
  table.rows_per_page = rows_per_page;
  for (std::int64_t first = 0; first < rows; first += rows_per_page) {
    const std::int64_t count = std::min(rows_per_page, rows - first);
    table.pages.push_back(make<Space>(
        "page", static_cast<std::size_t>(count), static_cast<std::size_t>(width),
        std::vector<T>(values.begin() + first * width, values.begin() + (first + count) * width)));
  }
  return table;
}

template <class T, class Space>
std::vector<T> taken(const paged_table<T, Space>& table) {
  std::vector<T> values;
  for (const auto& page : table.pages) {
    const auto part = take(page);
    values.insert(values.end(), part.begin(), part.end());
  }
  return values;
}

template <class Space>
struct twins {
  static constexpr std::int64_t rows = 83, rows_per_page = 12;

  exec_space exec;
  std::mt19937_64 random;
  std::size_t width, n = 61;
  std::vector<float> start;
  paged_table<float, Space> paged;
  ferry::tensor<float, Space> plain;
  std::vector<std::int32_t> indices;
  ferry::row_plan plan;

  twins(std::size_t columns, std::uint64_t salt)
      : random(generator(salt)),
        width(columns),
        start(values<float>(random, rows * columns)),
        paged(in_pages<float, Space>(start, rows, static_cast<std::int64_t>(columns), rows_per_page)),
        plain(make<Space>("plain", static_cast<std::size_t>(rows), columns, start)) {
    for (std::size_t p = 0; p < n; ++p) indices.push_back(static_cast<std::int32_t>(random() % rows));
    plan = ferry::make_plan(exec, indices, static_cast<std::size_t>(rows));
  }
  auto batch() { return make<ferry::device_space>("batch", n, width, values<float>(random, n * width)); }
  /// Bags of two positions, then empty ones.
  std::vector<std::int32_t> pairs() const {
    std::vector<std::int32_t> offsets;
    for (std::size_t b = 0; b < n; ++b) offsets.push_back(static_cast<std::int32_t>(std::min(2 * b, n)));
    return offsets;
  }
  bool agree() const { return same_bits(taken(paged), take(plain)); }
};

template <class Space, class Verb>
void on_both(std::size_t width, std::uint64_t salt, const Verb& verb) {
  CAPTURE(width, salt);
  twins<Space> tables(width, salt);
  verb(tables, tables.paged, tables.plain);
  CHECK(tables.agree());
}

/// The verb writes to a batch: the batches must agree.
template <class Space, class Out, class Verb>
void reads_alike(std::size_t width, std::uint64_t salt, const Verb& verb) {
  on_both<Space>(width, salt, [&](auto& tables, const auto& paged, const auto& plain) {
    const auto start = values<Out>(tables.random, tables.n * width);
    auto batch = make<ferry::device_space>("batch", tables.n, width, start);
    auto second = make<ferry::device_space>("other", tables.n, width, start);
    verb(tables, paged, batch);
    verb(tables, plain, second);
    CHECK(same_bits(take(batch), take(second)));
  });
}

template <class Space>
void all_reads(std::size_t width, std::uint64_t salt) {
  reads_alike<Space, float>(width, salt, [](auto& tables, const auto& table, auto& batch) {
    ferry::gather(tables.exec, table, tables.indices, batch).wait();
  });
  reads_alike<Space, double>(width, salt + 1, [](auto& tables, const auto& table, auto& batch) {
    ferry::gather(tables.exec, table, tables.plan, batch, ferry::path::direct{}).wait();
  });
  reads_alike<Space, float>(width, salt + 2, [](auto& tables, const auto& table, auto& batch) {
    ferry::gather(tables.exec, table, tables.indices, batch, ferry::path::ordered{}, ferry::bounds::skip{})
        .wait();
  });
  reads_alike<Space, float>(width, salt + 3, [](auto& tables, const auto& table, auto& batch) {
    ferry::gather_unique(tables.exec, table, tables.plan, batch).wait();
  });
  reads_alike<Space, float>(width, salt + 4, [](auto& tables, const auto& table, auto& batch) {
    ferry::gather_bags(tables.exec, table, tables.indices, tables.pairs(), batch, ferry::pooling::mean{})
        .wait();
  });
}

template <class Space>
void all_writes(std::size_t width, std::uint64_t salt) {
  on_both<Space>(width, salt, [](auto& tables, auto& paged, auto& plain) {
    const auto batch = tables.batch();
    ferry::scatter(tables.exec, paged, tables.indices, batch).wait();
    ferry::scatter(tables.exec, plain, tables.indices, batch).wait();
    ferry::scatter_add(tables.exec, paged, tables.plan, batch, ferry::path::ordered{}).wait();
    ferry::scatter_add(tables.exec, plain, tables.plan, batch, ferry::path::ordered{}).wait();
  });
  on_both<Space>(width, salt + 1, [](auto& tables, auto& paged, auto& plain) {
    const std::vector<std::int64_t> few{3, 70, 11, 12};
    const auto batch = make<ferry::device_space>("few", few.size(), tables.width,
                                                 values<float>(tables.random, few.size() * tables.width));
    ferry::scatter(tables.exec, paged, few, batch, ferry::duplicates::assume_unique{}).wait();
    ferry::scatter(tables.exec, plain, few, batch, ferry::duplicates::assume_unique{}).wait();
  });
}

template <class Space, class Rule, class... Policies>
void steps_alike(const Rule& rule, std::size_t width, std::uint64_t salt, Policies... policies) {
  on_both<Space>(width, salt, [&](auto& tables, auto& paged, auto& plain) {
    auto state = ferry::optim::make_state(rule, plain), second_state = ferry::optim::make_state(rule, plain);
    for (int call = 0; call < 3; ++call) {
      const auto grads = tables.batch();
      ferry::step(tables.exec, rule, paged, state, tables.indices, grads, policies...).wait();
      ferry::step(tables.exec, rule, plain, second_state, tables.indices, grads, policies...).wait();
    }
    CHECK(same_bits(take(state.field(0)), take(second_state.field(0))));
    const auto rows = static_cast<std::size_t>(tables.rows);
    const auto dense = make<ferry::device_space>("dense", rows, tables.width,
                                                 values<float>(tables.random, rows * tables.width));
    ferry::step(tables.exec, rule, paged, state, dense, policies...).wait();
    ferry::step(tables.exec, rule, plain, second_state, dense, policies...).wait();
    const auto grads = tables.batch();
    ferry::step_bags(tables.exec, rule, paged, state, tables.indices, tables.pairs(), grads, policies...)
        .wait();
    ferry::step_bags(tables.exec, rule, plain, second_state, tables.indices, tables.pairs(), grads,
                     policies...)
        .wait();
  });
}

TEST_CASE("a table in pages is read as an ordinary one", "[addresser]") {
  std::uint64_t salt = 41000;
  for (const std::size_t width : {1, 7, 16}) {
    all_reads<ferry::mapped_space>(width, salt += 10);
    all_reads<ferry::device_space>(width, salt += 10);
  }
}

TEST_CASE("a table in pages is written to as an ordinary one", "[addresser]") {
  std::uint64_t salt = 42000;
  for (const std::size_t width : {1, 7, 16}) {
    all_writes<ferry::mapped_space>(width, salt += 10);
    all_writes<ferry::device_space>(width, salt += 10);
  }
}

TEST_CASE("a table in pages is trained as an ordinary one", "[addresser]") {
  std::uint64_t salt = 43000;
  for (const std::size_t width : {7, 16}) {
    steps_alike<ferry::mapped_space>(ferry::optim::adam{}, width, salt += 10);
    steps_alike<ferry::mapped_space>(ferry::optim::adam{}, width, salt += 10, ferry::step_count::per_row{});
  }
}

TEST_CASE("a bad index leaves a table in pages unchanged", "[addresser]") {
  twins<ferry::mapped_space> tables(7, 44000);
  const auto batch = tables.batch();
  tables.indices[5] = 83;
  CHECK_THROWS_AS(ferry::scatter(tables.exec, tables.paged, tables.indices, batch).wait(),
                  ferry::out_of_range);
  CHECK_THROWS_AS(
      ferry::scatter(tables.exec, tables.paged, tables.indices, batch, ferry::duplicates::assume_unique{})
          .wait(),
      ferry::out_of_range);
  CHECK(tables.agree());
}

}  // namespace ferry_test::paged_table_test
