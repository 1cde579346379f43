// SPDX-License-Identifier: Apache-2.0
#include "cache/cache_kit.hpp"

#include <ferry/cache.hpp>

/// Exchanges while popularity stays and while it changes.
namespace ferry_test::settled_test {

namespace {

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

/// Gathers from the cache, for its hit rate and the rows that its exchanges load.
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

}  // namespace

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

TEST_CASE("rows that an exchange announced are not cached before they come", "[cache][settled]") {
  std::vector<std::uint32_t> words(4);
  const ferry::kernels::row_directory directory{words.data()};
  CHECK_FALSE(directory.is_cached(words[2]));
  directory.announce(2, 0);
  CHECK(directory.find(2) == ferry::kernels::coming(0));
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

}  // namespace ferry_test::settled_test
