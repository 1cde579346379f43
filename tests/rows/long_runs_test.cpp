// SPDX-License-Identifier: Apache-2.0
#include <ferry/ferry.hpp>
#include <ferry/rows/detail/gather_staged.hpp>

#include "support/random.hpp"

#include <catch2/catch_test_macros.hpp>

#include <utility>

namespace ferry_test::long_runs_test {

using pieces = std::vector<std::pair<std::int64_t, std::int64_t>>;

/// Runs by a plain loop over [first, first + count).
pieces runs_by_loop(const std::vector<std::int64_t>& rows, std::int64_t first, std::int64_t count,
                    std::int64_t least) {
  pieces list;
  for (std::int64_t begin = first, stop; begin < first + count; begin = stop) {
    const auto row = [&](std::int64_t i) { return rows[static_cast<std::size_t>(i)]; };
    for (stop = begin + 1; stop < first + count && row(begin) >= 0 && row(stop) == row(stop - 1) + 1;) ++stop;
    if (row(begin) >= 0 && stop - begin >= least) list.emplace_back(begin, stop - begin);
  }
  return list;
}

/// Runs of random lengths, some of them of one row, some without a row, some that begin where the last one ended.
std::vector<std::int64_t> list_with_runs(std::mt19937_64& random, std::int64_t longest, std::size_t n) {
  std::vector<std::int64_t> rows;
  std::int64_t row = 0;
  while (rows.size() < n) {
    const auto length = 1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(longest));
    switch (random() % 4) {
      case 0:
        rows.insert(rows.end(), static_cast<std::size_t>(length), -1);
        row = 0;
        break;
      case 1:
        for (std::int64_t i = 0; i < length; ++i) rows.push_back(static_cast<std::int64_t>(random() % 1000));
        break;
      default:
        if (random() % 2 == 0) row = static_cast<std::int64_t>(random() % 1000);
        for (std::int64_t i = 0; i < length; ++i) rows.push_back(row++);
    }
  }
  rows.resize(n);
  return rows;
}

TEST_CASE("runs of neighbouring rows are found wherever they begin", "[gather]") {
  auto random = generator(1);
  for (const std::int64_t least : {1, 2, 3, 4, 7, 64})
    for (int trial = 0; trial < 200; ++trial) {
      const auto rows = list_with_runs(random, 2 * least, 300);
      const auto first = static_cast<std::int64_t>(random() % 40);
      const auto count = static_cast<std::int64_t>(random() % 260);
      CAPTURE(least, first, count, rows);
      pieces runs;
      std::int64_t next = first;
      const auto in_order = [&](std::int64_t begin, std::int64_t length) {
        REQUIRE(begin == next);
        REQUIRE(length > 0);
        next = begin + length;
      };
      ferry::detail::long_runs(rows.data(), least, true)
          .split(
              first, count,
              [&](std::int64_t begin, std::int64_t length) {
                in_order(begin, length);
                runs.emplace_back(begin, length);
              },
              in_order);
      REQUIRE(next == first + count);
      REQUIRE(runs == runs_by_loop(rows, first, count, least));
    }
}

TEST_CASE("rows that are apart are runs of one", "[gather]") {
  const std::vector<std::int64_t> rows{4, 5, -1, 0, 1, 2, 9};
  pieces runs, rests;
  ferry::detail::long_runs(rows.data(), 1, false)
      .split(
          0, 7, [&](std::int64_t begin, std::int64_t length) { runs.emplace_back(begin, length); },
          [&](std::int64_t begin, std::int64_t length) { rests.emplace_back(begin, length); });
  CHECK(runs == pieces{{0, 1}, {1, 1}, {3, 1}, {4, 1}, {5, 1}, {6, 1}});
  CHECK(rests == pieces{{2, 1}});
}

TEST_CASE("without a least length nothing is a run", "[gather]") {
  pieces rests;
  ferry::detail::long_runs().split(
      3, 5, [](std::int64_t, std::int64_t) { FAIL(); },
      [&](std::int64_t begin, std::int64_t length) { rests.emplace_back(begin, length); });
  CHECK(rests == pieces{{3, 5}});
}

}  // namespace ferry_test::long_runs_test
