// SPDX-License-Identifier: Apache-2.0
#include "cache/cache_kit.hpp"
#include "support/test.hpp"

#include <ferry/cache.hpp>
#include <ferry/cache/explain.hpp>

namespace ferry_test::frequency_test {

// Which rows are cached: against plain loops that count, choose and refresh.

/// The policy in plain loops. Refreshes begin with a batch, after 1, 2, 4, ... batches up to the interval; with
/// every refresh after a full interval the counts are halved. From the third interval on, other rows need two
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
    if (batches_ >= due_) refresh(changed);
    ++batches_;
    for (const auto row : positions) counts_[static_cast<std::size_t>(row)] += 16;
  }
  [[nodiscard]] std::vector<std::int64_t> rows() const {
    std::vector<std::int64_t> list;
    for (std::size_t r = 0; r < current_.size(); ++r)
      if (current_[r]) list.push_back(static_cast<std::int64_t>(r));
    return list;
  }
  [[nodiscard]] std::uint64_t refreshes() const { return refreshes_; }

 private:
  void leave() {
    for (std::size_t r = 0; r < current_.size(); ++r) current_[r] = current_[r] && next_[r];
  }
  void refresh(bool changed) {
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
    ++refreshes_;
  }

  std::vector<std::int64_t> counts_;
  std::vector<bool> current_, next_;
  std::size_t slots_;
  std::int64_t interval_;
  std::int64_t batches_ = 0, due_ = 1, leave_at_ = -1, enter_at_ = -1;
  std::uint64_t refreshes_ = 0;
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
      // Of the same batch: neither counted nor a refresh.
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
  CHECK(counted.refreshes == plain.refreshes());
}

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

// Exchanges while popularity stays and while it changes.

constexpr std::size_t rows = 20000, width = 2, refresh = 8;

/// Every second position names one of `few` popular rows from `begin` on, the others any of the `many` after those.
std::vector<std::int64_t> sparse(std::mt19937_64& random, std::size_t count, std::size_t begin,
                                 std::size_t few, std::size_t many) {
  std::vector<std::int64_t> ids(count);
  for (std::size_t i = 0; i < count; ++i)
    ids[i] = static_cast<std::int64_t>(begin + (i % 2 == 0 ? random() % few : few + random() % many));
  return ids;
}

struct reading {
  double hit_rate;
  std::uint64_t rows_loaded;
};

/// Gathers from the cache, for its hit rate and the rows that its refreshes load.
template <class Hot, class Batch>
reading run(const exec_space& exec, Hot& hot, std::size_t batches, const Batch& batch) {
  const auto before = hot.statistics();
  for (std::size_t b = 0; b < batches; ++b) {
    const std::vector<std::int64_t> ids = batch();
    ferry::tensor<float, ferry::device_space> out("out", ids.size(), width);
    ferry::gather(exec, hot, ids, out).wait();
  }
  const auto after = hot.statistics();
  const std::uint64_t hits = after.hits - before.hits, misses = after.misses - before.misses;
  return {static_cast<double>(hits) / static_cast<double>(hits + misses),
          after.rows_loaded - before.rows_loaded};
}

TEST_CASE("rows that are hardly used stay until popularity changes", "[cache][settled]") {
  auto random = generator(7100);
  const exec_space exec;
  auto table = make<ferry::mapped_space>("table", rows, width, values<float>(random, rows * width));
  ferry::cached_table hot(table, ferry::cache::frequency{.rows = 2000, .refresh = refresh});
  // In an interval a popular row has four uses, and one of four other rows has one.
  const auto settle = run(exec, hot, 6 * refresh, [&] { return sparse(random, 500, 0, 500, 8000); });
  CHECK(settle.rows_loaded >= 1900);
  const auto settled = run(exec, hot, 8 * refresh, [&] { return sparse(random, 500, 0, 500, 8000); });
  // A cached row stays for five intervals after a use. If it stayed for three, more than 1900 would enter.
  CHECK(settled.rows_loaded < 8 * 200);
  CHECK(settled.hit_rate > 0.57);
  // All others from now on: a third of them has a use in an interval. They enter for the rows without one, of
  // which the popular ones lose their last count in eight intervals.
  run(exec, hot, 8 * refresh, [&] { return sparse(random, 150, 12000, 300, 1700); });
  const auto turned = run(exec, hot, refresh, [&] { return sparse(random, 150, 12000, 300, 1700); });
  CHECK(turned.hit_rate > 0.8);
}

TEST_CASE("rows that are used once in an interval replace those that are not used at all",
          "[cache][settled]") {
  auto random = generator(7150);
  const exec_space exec;
  auto table = make<ferry::mapped_space>("table", rows, width, values<float>(random, rows * width));
  ferry::cached_table hot(table, ferry::cache::frequency{.rows = 800, .refresh = refresh});
  std::size_t batch = 0;
  const auto hundred_from = [&](std::size_t begin) {
    std::vector<std::int64_t> ids(100);
    for (std::size_t i = 0; i < ids.size(); ++i)
      ids[i] = static_cast<std::int64_t>(begin + batch % refresh * ids.size() + i);
    ++batch;
    return ids;
  };
  run(exec, hot, 8 * refresh, [&] { return hundred_from(0); });
  run(exec, hot, 8 * refresh, [&] { return hundred_from(9000); });
  CHECK(run(exec, hot, refresh, [&] { return hundred_from(9000); }).hit_rate == 1.0);
}

TEST_CASE("rows of equal counts stay", "[cache][settled]") {
  auto random = generator(7200);
  const exec_space exec;
  auto table = make<ferry::mapped_space>("table", rows, width, values<float>(random, rows * width));
  ferry::cached_table hot(table, ferry::cache::frequency{.rows = 300, .refresh = refresh});
  // Each batch names 1000 rows once. The first ones are cached.
  std::vector<std::int64_t> ids(1000);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int64_t>(7 * i + 3);
  run(exec, hot, 40, [&] { return ids; });
  const auto cached = cached_rows(hot);
  CHECK(std::equal(cached.begin(), cached.end(), ids.begin(), ids.begin() + 300));
  CHECK(hot.statistics().rows_loaded == 300);
}

TEST_CASE("rows that a refresh announced are not cached before they come", "[cache][settled]") {
  std::vector<std::uint32_t> words(4);
  const ferry::kernels::row_directory directory{words.data()};
  CHECK_FALSE(directory.is_cached(words[2]));
  directory.announce(2, 0);
  CHECK(directory.find(2) == ferry::kernels::loading(0));
  CHECK_FALSE(directory.is_cached(words[2]));
  directory.insert(2, 0);
  CHECK(directory.is_cached(words[2]));
}

TEST_CASE("rows with uses of any number are told apart", "[cache][settled]") {
  auto random = generator(7300);
  const exec_space exec;
  const std::vector<std::int64_t> uses{2,    130,    131,    3000,
                                       3001, 140000, 140001, 400000};  // of rows 7, 6, ... 0
  std::vector<std::int64_t> ids;
  for (std::size_t r = 0; r < uses.size(); ++r)
    ids.insert(ids.end(), static_cast<std::size_t>(uses[r]), static_cast<std::int64_t>(uses.size() - 1 - r));
  auto table = make<ferry::mapped_space>("table", 13, width, values<float>(random, 13 * width));
  for (std::size_t slots = 1; slots <= uses.size() + 1; ++slots) {
    CAPTURE(slots);
    ferry::cached_table hot(table, ferry::cache::frequency{.rows = slots, .refresh = refresh});
    run(exec, hot, 1, [&] { return ids; });
    run(exec, hot, 1, [&] { return std::vector<std::int64_t>{12}; });
    std::vector<std::int64_t> expected(std::min(slots, uses.size()));
    for (std::size_t r = 0; r < expected.size(); ++r) expected[r] = static_cast<std::int64_t>(r);
    CHECK(cached_rows(hot) == expected);
  }
}

// Predictions for verbs on cached tables.

ferry::cache::explanation explained(const ferry::machine_profile& profile, ferry::verb kind, std::int64_t n,
                                    const ferry::cache::statistics& counted) {
  const ferry::detail::move_facts whole{
      kind, ferry::mapped_space::name, ferry::device_space::name, std::int64_t{16} << 30, 512, n, false,
      false};
  return ferry::detail::explain_cached<exec_space>(profile, whole, std::int64_t{1} << 25, 335544, counted);
}

TEST_CASE("predictions for cached tables follow the hit rate", "[cache][explain]") {
  const ferry::machine_profile profile;
  const std::int64_t n = 1 << 20;
  double before = 1e9;
  for (const std::uint64_t hits : {0, 5, 9, 10}) {
    const ferry::cache::statistics counted{.hits = hits, .misses = 10 - hits};
    const double rate = counted.hit_rate();
    CAPTURE(rate);
    const auto explanation = explained(profile, ferry::verb::gather, n, counted);
    REQUIRE(explanation.candidates.size() == 1);
    const double seconds = explanation.candidates.front().seconds;
    CHECK(seconds < before);
    before = seconds;
    CHECK(explanation.hit_rate == rate);
    CHECK(std::abs(static_cast<double>(explanation.link_bytes) -
                   (1 - rate) * 512.0 * static_cast<double>(n)) < 600);
    // Not below what the link takes for the misses, nor far above.
    const double link = static_cast<double>(explanation.link_bytes) / (profile.mapped_read_gb_per_s * 1e9);
    CHECK(seconds >= link);
    if (rate <= 0.9) CHECK(seconds < 1.3 * link + 1e-4);
  }
  const auto step = explained(profile, ferry::verb::step, n, {.hits = 1, .misses = 1});
  CHECK(step.link_bytes == n * 512);
  const auto even = explained(profile, ferry::verb::gather, n, {});
  CHECK(std::abs(even.hit_rate - 0.01) < 1e-4);
  CHECK_THAT(even.to_string(), ContainsSubstring("equally likely"));
}

TEST_CASE("explain takes cached tables", "[cache][explain]") {
  auto random = generator(8000);
  const exec_space exec;
  auto table = make<ferry::mapped_space>("weights", 100, 16, values<float>(random, 1600));
  ferry::cached_table hot(table, ferry::cache::first{20});
  CHECK(ferry::explain(ferry::verb::gather, hot, 50).hit_rate == 0.2);
  ferry::tensor<float, ferry::device_space> out("out", 4, 16);
  ferry::gather(exec, hot, std::vector<int>{1, 2, 3, 99}, out).wait();
  const auto explanation = ferry::explain(ferry::verb::gather, hot, 1000, exec, {.planned = true});
  CHECK(explanation.hit_rate == 0.75);
  CHECK(explanation.link_bytes == 250 * 64);
  CHECK(explanation.picked == ferry::path_kind::direct);
  CHECK(explanation.candidates.front().seconds > 0);
  const std::string text = explanation.to_string();
  CHECK_THAT(text, ContainsSubstring("gather of 1000 rows, cached table 'weights' [100 x 16] in mapped_space "
                                     "with 20 rows in device_space, batch in ") &&
                       ContainsSubstring("with a plan") && ContainsSubstring("* direct") &&
                       ContainsSubstring("75.0 % hits so far") &&
                       ContainsSubstring("0.016 MB over the link"));
  CHECK_THROWS_AS(static_cast<void>(ferry::explain(ferry::verb::gather, hot, -1)), ferry::invalid_argument);
}

}  // namespace ferry_test::frequency_test
