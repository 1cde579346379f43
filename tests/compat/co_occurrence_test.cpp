// SPDX-License-Identifier: Apache-2.0
#include "support/matrix.hpp"
#include "support/test.hpp"

#include <ferry/compat/co_occurrence.hpp>

namespace ferry_test::co_occurrence_test {

using ferry::speedtorch::co_occurrence;
using ferry::speedtorch::co_occurrence_options;
using entry_map = std::map<std::pair<std::int64_t, std::int64_t>, double>;

template <class Token>
void count_plainly(entry_map& counts, const std::vector<Token>& tokens, const co_occurrence_options& how) {
  for (std::size_t right = 0; right < tokens.size(); ++right) {
    if (tokens[right] < 0) continue;
    for (std::size_t distance = 1; distance <= static_cast<std::size_t>(how.window); ++distance) {
      if (distance > right || tokens[right - distance] < 0) break;
      const double weight = how.by_distance ? 1.0 / static_cast<double>(distance) : 1.0;
      counts[{tokens[right - distance], tokens[right]}] += weight;
      if (how.symmetric) counts[{tokens[right], tokens[right - distance]}] += weight;
    }
  }
}

template <class Counts>
void compare(const exec_space& exec, Counts& counts, const entry_map& expected, bool exact) {
  const auto result = counts.entries(exec);
  const auto rows = take(result.rows);
  const auto columns = take(result.columns);
  const auto values = take(result.values);
  REQUIRE(rows.size() == expected.size());
  REQUIRE(counts.size(exec) == static_cast<std::int64_t>(expected.size()));
  std::size_t i = 0, wrong = 0;
  for (const auto& [pair, value] : expected) {
    const bool same = rows[i] == pair.first && columns[i] == pair.second &&
                      (exact ? values[i] == value : std::abs(values[i] - value) <= 1e-12 * value);
    wrong += same ? 0 : 1;
    ++i;
  }
  CHECK(wrong == 0);
}

std::vector<std::int32_t> text_of(std::uint64_t seed, std::size_t length, int classes) {
  auto random = generator(seed);
  auto text = indices<std::int32_t>(random, length, classes);
  for (std::size_t i = 0; i < text.size(); i += 37) text[i] = -1;
  return text;
}

TEST_CASE("co-occurrences are those of a plain loop", "[co_occurrence]") {
  const exec_space exec;
  for (const co_occurrence_options how :
       {co_occurrence_options{1, false, false}, co_occurrence_options{4, true, false},
        co_occurrence_options{15, false, true}, co_occurrence_options{50, true, true}}) {
    const auto text = text_of(11 + static_cast<std::uint64_t>(how.window), 700, 40);
    co_occurrence<> counts("counts", 40, how);
    counts.add(exec, text);
    entry_map expected;
    count_plainly(expected, text, how);
    compare(exec, counts, expected, !how.by_distance);
  }
}

TEST_CASE("co-occurrences of several texts and pieces", "[co_occurrence]") {
  const exec_space exec;
  const co_occurrence_options how{64, true, false};
  co_occurrence<> counts("counts", 300, how);
  entry_map expected;
  // 128 pairs a token: the second text is longer than a piece of 2^22 pairs.
  for (const std::size_t length :
       {std::size_t{100}, std::size_t{33'000}, std::size_t{1}, std::size_t{0}, std::size_t{5'000}}) {
    const auto text = text_of(length, length, 300);
    count_plainly(expected, text, how);
    counts.add(exec, text);
  }
  compare(exec, counts, expected, true);
}

TEST_CASE("tokens in device memory are counted, too", "[co_occurrence]") {
  const exec_space exec;
  auto random = generator(5);
  const auto text = indices<std::int64_t>(random, 2000, std::int64_t{1} << 20);
  ferry::tensor<std::int64_t, ferry::device_space> tokens("tokens", 2000);
  put(tokens, text);
  co_occurrence<> counts("counts", std::int64_t{1} << 20, {.window = 3});
  counts.add(exec, tokens);
  entry_map expected;
  count_plainly(expected, text, {.window = 3});
  compare(exec, counts, expected, false);
}

TEST_CASE("a bad token is named and counts nothing", "[co_occurrence]") {
  const exec_space exec;
  co_occurrence<> counts("counts", 10, {.window = 2, .symmetric = false, .by_distance = false});
  counts.add(exec, std::vector<int>{1, 2, 1});
  CHECK_THROWS_MATCHES(
      counts.add(exec, std::vector<int>{3, 10, 4}), ferry::out_of_range,
      MessageMatches(ContainsSubstring("the token 10 is not below the 10 classes of 'counts'")));
  compare(exec, counts, {{{1, 1}, 1.0}, {{1, 2}, 1.0}, {{2, 1}, 1.0}}, true);
  CHECK_THROWS_MATCHES(co_occurrence<>("none", 0), ferry::invalid_argument,
                       MessageMatches(ContainsSubstring("'none' has 0 classes")));
  CHECK_THROWS_MATCHES(co_occurrence<>("wide", 5, {.window = 5000}), ferry::invalid_argument,
                       MessageMatches(ContainsSubstring("a window of 5000")));
}

}  // namespace ferry_test::co_occurrence_test
