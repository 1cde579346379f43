// SPDX-License-Identifier: Apache-2.0
#include "cache/cache_kit.hpp"

#include <ferry/cache/catch_up.hpp>
#include <ferry/cache/copy.hpp>
#include <ferry/cache/init.hpp>

#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <string>
#include <utility>

/// Verbs on whole cached tables, and how table and cache keep each other from missing changes.
namespace ferry_test::whole_test {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

constexpr std::size_t rows = 150, width = 12;

/// A table with a cache that has newer rows, and what the rows are.
struct dirty {
  exec_space exec;
  std::vector<float> now;
  ferry::tensor<float, ferry::mapped_space> table;
  ferry::cached_table<ferry::tensor<float, ferry::mapped_space>, ferry::cache::first> hot;

  explicit dirty(std::uint64_t salt)
      : table(make<ferry::mapped_space>("table", rows, width, std::vector<float>(rows * width, 1.0f))),
        hot(table, ferry::cache::first{40}) {
    auto random = generator(salt);
    now = values<float>(random, rows * width);
    std::vector<std::int64_t> every_row(rows);
    for (std::size_t r = 0; r < rows; ++r) every_row[r] = static_cast<std::int64_t>(r);
    auto batch = make<ferry::device_space>("batch", rows, width, now);
    ferry::scatter(exec, hot, every_row, batch).wait();
  }
};

/// 40 rows are in device memory only.
void require_dirty(const dirty& sample) { REQUIRE_FALSE(same_bits(take(sample.table), sample.now)); }

}  // namespace

TEST_CASE("copy and clone see the changes of cached rows", "[cache][whole]") {
  dirty sample(1);
  require_dirty(sample);
  ferry::tensor<float, ferry::pageable_space> out("out", rows, width);
  ferry::copy(sample.exec, sample.hot, out).wait();
  CHECK(same_bits(take(out), sample.now));
  dirty second(2);
  require_dirty(second);
  const auto twin = ferry::clone<ferry::device_space>(second.exec, second.hot).get();
  CHECK(same_bits(take(twin), second.now));
  const auto same = ferry::clone(second.exec, second.hot, "same").get();
  CHECK(same.label() == "same");
  CHECK(same_bits(take(same), second.now));
  const auto some =
      ferry::gather<ferry::pinned_space>(sample.exec, sample.hot, std::vector<int>{3, 149}).get();
  CHECK(take(some)[0] == sample.now[3 * width]);
  CHECK(take(some)[width] == sample.now[149 * width]);
}

TEST_CASE("cached rows follow what is copied to the table and set in it", "[cache][whole]") {
  dirty sample(3);
  require_dirty(sample);
  auto random = generator(4);
  const auto next = values<float>(random, rows * width);
  auto source = make<ferry::pageable_space>("from", rows, width, next);
  ferry::copy(sample.exec, source, sample.hot).wait();
  const auto got =
      ferry::gather<ferry::pinned_space>(sample.exec, sample.hot, std::vector<int>{0, 39, 40, 149}).get();
  CHECK(take(got)[0] == next[0]);
  CHECK(take(got)[width + 1] == next[39 * width + 1]);
  CHECK(take(got)[3 * width] == next[149 * width]);

  const auto all_are = [&](float value) {
    const auto rows_now =
        ferry::gather<ferry::pinned_space>(sample.exec, sample.hot, std::vector<int>{0, 39, 40}).get();
    return take(rows_now) == std::vector<float>(3 * width, value);
  };
  ferry::init::zeros(sample.exec, sample.hot);
  CHECK(all_are(0.0f));
  ferry::init::constant(sample.exec, sample.hot, 2.5f);
  CHECK(all_are(2.5f));
  ferry::tensor<float, ferry::mapped_space> twin("twin", rows, width);
  ferry::init::uniform(sample.exec, sample.hot, -1.0, 1.0, 7);
  ferry::init::uniform(sample.exec, twin, -1.0, 1.0, 7);
  ferry::tensor<float, ferry::mapped_space> out("out", rows, width);
  ferry::copy(sample.exec, sample.hot, out).wait();
  CHECK(same_bits(take(out), take(twin)));
  ferry::init::normal(sample.exec, sample.hot, 1.0, 2.0, 8);
  ferry::init::normal(sample.exec, twin, 1.0, 2.0, 8);
  ferry::copy(sample.exec, sample.hot, out).wait();
  CHECK(same_bits(take(out), take(twin)));
}

TEST_CASE("the backing table is refused where changes would be missed", "[cache][whole]") {
  dirty sample(5);
  require_dirty(sample);
  ferry::tensor<float, ferry::device_space> out("out", 1, width);
  const std::string newer = "newer rows of 'table' in device memory";
  const std::string unseen = "rows of 'table' in device memory and would not see this write";
  CHECK_THROWS_MATCHES(ferry::gather(sample.exec, sample.table, std::vector<int>{1}, out),
                       ferry::invalid_argument, MessageMatches(ContainsSubstring(newer)));
  CHECK_THROWS_MATCHES(ferry::clone(sample.exec, sample.table), ferry::invalid_argument,
                       MessageMatches(ContainsSubstring(newer)));
  auto part = sample.table.first(3);
  CHECK_THROWS_MATCHES(ferry::gather(sample.exec, part, std::vector<int>{1}, out), ferry::invalid_argument,
                       MessageMatches(ContainsSubstring(newer)));
  CHECK_THROWS_MATCHES(ferry::init::zeros(sample.exec, sample.table), ferry::invalid_argument,
                       MessageMatches(ContainsSubstring(unseen)));
  CHECK_THROWS_MATCHES(ferry::cached_table(sample.table, ferry::cache::first{1}), ferry::invalid_argument,
                       MessageMatches(ContainsSubstring("has a cached_table already")));

  sample.hot.flush(sample.exec).wait();
  CHECK(same_bits(take(sample.table), sample.now));
  ferry::gather(sample.exec, sample.table, std::vector<int>{1}, out).wait();
  CHECK(take(out)[0] == sample.now[width]);
  CHECK_THROWS_MATCHES(ferry::scatter(sample.exec, sample.table, std::vector<int>{1}, out),
                       ferry::invalid_argument, MessageMatches(ContainsSubstring(unseen)));
  ferry::gather(sample.exec, sample.hot.table(sample.exec), std::vector<int>{2}, out).wait();
  CHECK(take(out)[0] == sample.now[2 * width]);

  // Nothing of it has harmed the cache, and its end frees the table.
  ferry::gather(sample.exec, sample.hot, std::vector<int>{3}, out).wait();
  CHECK(take(out)[0] == sample.now[3 * width]);
  {
    auto ends = std::move(sample.hot);
    CHECK(ends.rows() == rows);
  }
  ferry::init::zeros(sample.exec, sample.table);
  CHECK(take(sample.table) == std::vector<float>(rows * width, 0.0f));
  CHECK_THROWS_AS(ferry::gather(sample.exec, sample.hot, std::vector<int>{3}, out), ferry::invalid_argument);
}

TEST_CASE("catch_up and the gather of current rows work on a cached table", "[cache][whole]") {
  const exec_space exec;
  auto random = generator(6);
  const ferry::optim::adam rule{.lr = 0.05};
  const ferry::step_count::catch_up counting;
  const auto start = values<float>(random, rows * width);
  auto table = make<ferry::mapped_space>("table", rows, width, start);
  auto twin = make<ferry::mapped_space>("twin", rows, width, start);
  ferry::cached_table hot(table, ferry::cache::frequency{.rows = 30, .refresh = 2});
  auto state = ferry::optim::make_state(rule, hot, counting);
  auto twin_state = ferry::optim::make_state(rule, twin, counting);
  for (int call = 0; call < 9; ++call) {
    const auto ids = skewed<std::int32_t>(random, 40, rows, 0, 12);
    auto grads = make<ferry::device_space>("grads", 40, width, values<float>(random, 40 * width));
    auto mine = make<ferry::device_space>("mine", 40, width, std::vector<float>(40 * width, -1.0f));
    auto twin_out = make<ferry::device_space>("its", 40, width, std::vector<float>(40 * width, -2.0f));
    ferry::gather(exec, rule, hot, state, ids, mine).wait();
    ferry::gather(exec, rule, twin, twin_state, ids, twin_out).wait();
    CHECK(same_bits(take(mine), take(twin_out)));
    ferry::step(exec, rule, hot, state, ids, grads, counting).wait();
    ferry::step(exec, rule, twin, twin_state, ids, grads, counting).wait();
    if (call % 4 == 3) {
      ferry::catch_up(exec, rule, hot, state).wait();
      ferry::catch_up(exec, rule, twin, twin_state).wait();
    }
  }
  CHECK_THROWS_AS(ferry::clone(exec, state.field(0)),
                  ferry::invalid_argument);  // state is cached, too
  hot.flush(exec).wait();
  CHECK(same_bits(take(table), take(twin)));
  CHECK(same_bits(take(state.field(1)), take(twin_state.field(1))));
}

}  // namespace ferry_test::whole_test
