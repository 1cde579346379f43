// SPDX-License-Identifier: Apache-2.0
#include "cache/cache_kit.hpp"

#include <ferry/cache.hpp>

#include <tuple>

/// Which rows are cached: against plain loops that count, choose and exchange.
namespace ferry_test::frequency_test {

namespace {

/// The policy in plain loops. Exchanges begin with a batch, after 1, 2, 4, ... batches up to the interval; with
/// every exchange after a full interval the counts are halved. From the third interval on, other rows need two
/// uses more than a cached row of which a sixteenth of a use is left. From an interval of 4 on, rows leave when the
/// changed ones have been written, which takes an eighth of the interval, and others enter when they have been
/// loaded, which takes as long.
class model {
 public:
  model(std::size_t rows, std::size_t slots, std::int64_t interval)
      : counts_(rows, 0), current_(rows, false), slots_(slots), interval_(interval) {}

  void batch(const std::vector<std::int64_t>& positions, bool changed) {
    if (leave_at_ == batches_) leave();
    if (enter_at_ == batches_) current_ = next_;
    if (batches_ >= due_) exchange(changed);
    ++batches_;
    for (const auto row : positions) counts_[static_cast<std::size_t>(row)] += 16;
  }
  [[nodiscard]] std::vector<std::int64_t> rows() const {
    std::vector<std::int64_t> list;
    for (std::size_t r = 0; r < current_.size(); ++r)
      if (current_[r]) list.push_back(static_cast<std::int64_t>(r));
    return list;
  }
  [[nodiscard]] std::uint64_t exchanges() const { return exchanges_; }

 private:
  void leave() {
    for (std::size_t r = 0; r < current_.size(); ++r) current_[r] = current_[r] && next_[r];
  }
  void exchange(bool changed) {
    // By descending count, then rows that are there, then row numbers.
    std::vector<std::tuple<std::int64_t, int, std::int64_t>> order;
    for (std::size_t r = 0; r < counts_.size(); ++r)
      if (counts_[r] != 0 || current_[r])
        order.emplace_back(
            -counts_[r] - (current_[r] && counts_[r] != 0 && batches_ >= 2 * interval_ ? 31 : 0),
            current_[r] ? 0 : 1, static_cast<std::int64_t>(r));
    std::sort(order.begin(), order.end());
    std::size_t used_slots = 0;
    next_.assign(current_.size(), false);
    for (const auto& [count, away, row] : order) {
      const auto r = static_cast<std::size_t>(row);
      if (used_slots++ == slots_) break;
      next_[r] = true;
    }
    const std::int64_t gap = std::min(interval_, batches_), lag = std::max<std::int64_t>(1, gap / 8);
    if (gap < 4) {
      current_ = next_;
    } else {
      leave_at_ = changed ? batches_ + lag : batches_;
      enter_at_ = leave_at_ + lag;
      if (!changed) leave();
    }
    if (gap == interval_)
      for (auto& count : counts_) count /= 2;
    due_ = batches_ + gap;
    ++exchanges_;
  }

  std::vector<std::int64_t> counts_;
  std::vector<bool> current_, next_;
  std::size_t slots_;
  std::int64_t interval_;
  std::int64_t batches_ = 0, due_ = 1, leave_at_ = -1, enter_at_ = -1;
  std::uint64_t exchanges_ = 0;
};

void follows_model(std::size_t rows, std::size_t most, int refresh, std::uint64_t salt) {
  CAPTURE(rows, most, refresh);
  auto random = generator(salt);
  const exec_space exec;
  auto table = make<ferry::mapped_space>("table", rows, 4, values<float>(random, rows * 4));
  ferry::cached_table hot(table, ferry::cache::frequency{.rows = most, .refresh = refresh});
  model plain(rows, hot.slots(), refresh);
  const int writes_from = salt % 2 == 0 ? 1 : 49;  // odd
  std::uint64_t hits = 0, positions = 0;
  for (int batch = 0; batch < 90; ++batch) {
    CAPTURE(batch);
    const std::size_t n = 1 + random() % 200;
    const auto ids = skewed<std::int64_t>(random, n, rows, batch < 40 ? 3 : rows / 2, rows / 16 + 1);
    ferry::tensor<float, ferry::device_space> out("out", n, 4);
    if (batch % 2 == 0) {
      ferry::gather(exec, hot, ids, out).wait();
    } else {
      const auto plan = ferry::make_plan(exec, ids, rows);
      ferry::gather(exec, hot, plan, out).wait();
      // Of the same batch: neither counted nor exchanged.
      if (batch >= writes_from)
        ferry::scatter_add(exec, hot, plan, out).wait();
      else
        ferry::gather(exec, hot, plan, out).wait();
    }
    plain.batch(ids, batch > writes_from);
    const auto cached = cached_rows(hot);
    REQUIRE(cached == plain.rows());
    const auto verbs = 1 + static_cast<std::uint64_t>(batch % 2);
    std::uint64_t batch_hits = 0;
    for (const auto row : ids)
      batch_hits += static_cast<std::uint64_t>(std::binary_search(cached.begin(), cached.end(), row));
    hits += batch_hits * verbs;
    positions += n * verbs;
  }
  const auto counted = hot.statistics();
  CHECK(counted.hits == hits);
  CHECK(counted.misses == positions - hits);
  CHECK(counted.bytes_saved == hits * 16);
  CHECK(counted.refreshes == plain.exchanges());
}

}  // namespace

TEST_CASE("the most frequent rows are cached", "[cache][frequency]") {
  std::uint64_t salt = 100;
  for (const int refresh : {1, 3, 4, 16}) {
    follows_model(700, 50, refresh, ++salt);
    follows_model(700, 700, refresh, ++salt);  // slots for all rows
    follows_model(5, 1, refresh, ++salt);
    follows_model(2500, 1000, refresh, ++salt);
    follows_model(20, 20, refresh, ++salt);
  }
}

TEST_CASE("popularity that drifts is followed", "[cache][frequency]") {
  auto random = generator(200);
  const exec_space exec;
  constexpr std::size_t rows = 4000, hot_rows = 200, n = 1000;
  auto table = make<ferry::mapped_space>("table", rows, 2, values<float>(random, rows * 2));
  ferry::cached_table hot(table, ferry::cache::frequency{.rows = hot_rows, .refresh = 8});
  ferry::tensor<float, ferry::device_space> out("out", n, 2);
  const auto rate_after = [&](std::size_t begin) {
    const auto run = [&] {
      // Nine of ten positions are of the popular rows.
      std::vector<std::int64_t> ids(n);
      for (auto& row : ids)
        row = static_cast<std::int64_t>(random() % 10 == 0 ? random() % rows : begin + random() % hot_rows);
      ferry::gather(exec, hot, ids, out).wait();
    };
    for (int batch = 0; batch < 40; ++batch) run();
    const auto before = hot.statistics();
    for (int batch = 0; batch < 8; ++batch) run();
    const auto after = hot.statistics();
    return static_cast<double>(after.hits - before.hits) / (8.0 * n);
  };
  CHECK(rate_after(0) > 0.88);
  CHECK(rate_after(3000) > 0.88);
  CHECK(rate_after(1500) > 0.88);
}

TEST_CASE("runs with equal batches cache equal rows", "[cache][frequency]") {
  const exec_space exec;
  constexpr std::size_t rows = 3000;
  const auto run = [&] {
    auto random = generator(300);
    auto table = make<ferry::mapped_space>("table", rows, 3, values<float>(random, rows * 3));
    std::vector<std::vector<std::int64_t>> snapshots;
    ferry::cached_table hot(table, ferry::cache::frequency{.rows = 160, .refresh = 3});
    for (int batch = 0; batch < 20; ++batch) {
      const auto ids = skewed<std::uint32_t>(random, 400, rows, static_cast<std::size_t>(batch) * 20, 100);
      ferry::tensor<float, ferry::device_space> out("out", ids.size(), 3);
      ferry::gather(exec, hot, ids, out).wait();
      ferry::scatter_add(exec, hot, ids, out).wait();
      // With the slots, which are reproducible, too.
      const auto words = take(hot.core().memory.words);
      const auto offset = reinterpret_cast<const std::uint64_t*>(hot.core().memory.book.current_rows) -
                          hot.core().memory.words.data();
      snapshots.emplace_back(words.begin() + offset, words.begin() + offset + hot.core().memory.slots);
    }
    return snapshots;
  };
  CHECK(run() == run());
}

TEST_CASE("rows that the user lists, or the first ones, stay", "[cache][frequency]") {
  auto random = generator(400);
  const exec_space exec;
  auto table = make<ferry::mapped_space>("table", 500, 3, values<float>(random, 1500));
  ferry::tensor<float, ferry::device_space> out("out", 300, 3);
  const auto runs = [&](auto& hot, const std::vector<std::int64_t>& expected) {
    CHECK(cached_rows(hot) == expected);
    const auto before = hot.statistics().hits;
    const auto ids = indices<std::int32_t>(random, 300, 500);
    ferry::gather(exec, hot, ids, out).wait();
    ferry::gather(exec, hot, ids, out).wait();
    CHECK(cached_rows(hot) == expected);
    std::uint64_t hits = 0;
    for (const auto row : ids)
      hits +=
          static_cast<std::uint64_t>(std::binary_search(expected.begin(), expected.end(), std::int64_t{row}));
    CHECK(hot.statistics().hits - before == 2 * hits);
    CHECK(hot.statistics().refreshes == 0);
  };
  {
    ferry::cached_table hot(table, ferry::cache::fixed{{499, 7, 7, 30}});
    runs(hot, {7, 30, 499});
  }
  {
    const std::vector<unsigned> list{1, 2, 400};
    ferry::cached_table hot(table, ferry::cache::fixed{list});
    runs(hot, {1, 2, 400});
  }
  {
    std::vector<std::int64_t> expected(70);
    for (std::size_t r = 0; r < expected.size(); ++r) expected[r] = static_cast<std::int64_t>(r);
    ferry::cached_table hot(table, ferry::cache::first{70});
    runs(hot, expected);
    ferry::cached_table second(std::move(hot));
    runs(second, expected);
  }
  CHECK_THROWS_AS(ferry::cached_table(table, ferry::cache::fixed{{500}}), ferry::out_of_range);
  CHECK_THROWS_AS(ferry::cached_table(table, ferry::cache::fixed{{-1}}), ferry::out_of_range);
  CHECK_THROWS_AS(ferry::cached_table(table, ferry::cache::first{-1}), ferry::invalid_argument);
  CHECK_THROWS_AS((ferry::cached_table(table, ferry::cache::frequency{.rows = -1})), ferry::invalid_argument);
  CHECK_THROWS_AS((ferry::cached_table(table, ferry::cache::frequency{.rows = 5, .refresh = 0})),
                  ferry::invalid_argument);
}

}  // namespace ferry_test::frequency_test
