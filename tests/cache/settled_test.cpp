// SPDX-License-Identifier: Apache-2.0
#include "cache/cache_kit.hpp"

#include <ferry/cache.hpp>

/// The choice of rows by their counts.
namespace ferry_test::settled_test {

namespace {

constexpr std::size_t rows = 20000, width = 2, refresh = 8;

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

TEST_CASE("rows of equal counts stay", "[cache][settled]") {
  auto random = generator(7200);
  const exec_space exec;
  auto table = make<ferry::mapped_space>("table", rows, width, values<float>(random, rows * width));
  ferry::cached_table hot(table, ferry::cache::frequency{.rows = 300, .refresh = refresh},
                          ferry::cache::dense{});
  // Each batch names 1000 rows once. The first ones are cached.
  std::vector<std::int64_t> ids(1000);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int64_t>(7 * i + 3);
  run(exec, hot, 40, [&] { return ids; });
  const auto cached = cached_rows(hot);
  CHECK(std::equal(cached.begin(), cached.end(), ids.begin(), ids.begin() + 300));
  CHECK(hot.statistics().rows_loaded == 300);
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
    ferry::cached_table hot(table, ferry::cache::frequency{.rows = slots, .refresh = refresh},
                            ferry::cache::dense{});
    run(exec, hot, 1, [&] { return ids; });
    run(exec, hot, 1, [&] { return std::vector<std::int64_t>{12}; });
    std::vector<std::int64_t> expected(std::min(slots, uses.size()));
    for (std::size_t r = 0; r < expected.size(); ++r) expected[r] = static_cast<std::int64_t>(r);
    CHECK(cached_rows(hot) == expected);
  }
}

}  // namespace ferry_test::settled_test
