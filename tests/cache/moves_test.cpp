// SPDX-License-Identifier: Apache-2.0
#include "cache/cache_kit.hpp"

#include <ferry/cache.hpp>

#include <boost/hana/for_each.hpp>
#include <boost/hana/tuple.hpp>
#include <boost/hana/type.hpp>

#include <catch2/catch_template_test_macros.hpp>

#include <type_traits>

/// gather, scatter and scatter_add on cached tables of any element type.
namespace ferry_test::moves_test {

namespace {

struct triple {
  float x;
  std::int32_t a, b;
};

template <class T>
std::vector<T> any_values(std::mt19937_64& random, std::size_t count) {
  if constexpr (std::is_same_v<T, triple>) {
    std::vector<T> result(count);
    for (auto& entry : result)
      entry = {0.5f * static_cast<float>(random() % 100), static_cast<int>(random() % 9), -3};
    return result;
  } else {
    return values<T>(random, count);
  }
}

template <class T, class Space>
void random_verbs(std::size_t rows, std::size_t width, std::size_t cached, int refresh, std::uint64_t salt) {
  CAPTURE(rows, width, cached, refresh);
  auto random = generator(salt);
  const exec_space exec;
  const auto start = any_values<T>(random, rows * width);
  auto table = make<Space>("table", rows, width, start);
  auto twin = make<Space>("twin", rows, width, start);
  {
    ferry::cached_table hot(table, ferry::cache::frequency{.rows = cached, .refresh = refresh});
    // An exchange in parts takes some calls, which change rows that leave and rows that enter.
    const int calls = refresh < 4 ? 24 : 60;
    for (int call = 0; call < calls; ++call) {
      CAPTURE(call);
      const std::size_t n = random() % 90;
      const std::size_t begin = static_cast<std::size_t>(call * 3 / calls) * rows / 3;
      const auto ids = skewed<std::int32_t>(random, n, rows, begin, rows / 10 + 1);
      const auto input = any_values<T>(random, n * width);
      auto batch = make<ferry::device_space>("batch", n, width, input);
      auto second = make<ferry::device_space>("other", n, width, input);
      const auto plan = ferry::make_plan(exec, ids, rows);
      switch (random() % 6) {
        case 0:
          ferry::gather(exec, hot, ids, batch).wait();
          ferry::gather(exec, twin, ids, second).wait();
          CHECK(same_bits(take(batch), take(second)));
          break;
        case 1:
          ferry::gather(exec, hot, plan, batch).wait();
          ferry::gather(exec, twin, plan, second).wait();
          CHECK(same_bits(take(batch), take(second)));
          break;
        case 2:
          ferry::scatter(exec, hot, ids, batch).wait();
          ferry::scatter(exec, twin, ids, batch).wait();
          break;
        case 3:
          ferry::scatter(exec, hot, plan, batch, ferry::duplicates::first{}).wait();
          ferry::scatter(exec, twin, plan, batch, ferry::duplicates::first{}).wait();
          break;
        case 4: {
          const std::size_t few = std::min(n, rows);
          const auto few_ids = unique_indices<std::uint64_t>(random, few, rows);
          auto some = make<ferry::device_space>("some", few, width, any_values<T>(random, few * width));
          ferry::scatter(exec, hot, few_ids, some, ferry::duplicates::assume_unique{}).wait();
          ferry::scatter(exec, twin, few_ids, some, ferry::duplicates::assume_unique{}).wait();
          break;
        }
        default:
          if constexpr (ferry::NumberElement<T>) {
            ferry::scatter_add(exec, hot, ids, batch).wait();
            ferry::scatter_add(exec, twin, ids, batch).wait();
          }
      }
      if (call % 7 == 3 && (refresh < 4 || call > calls / 2)) {
        hot.flush(exec).wait();
        CHECK(same_bits(take(table), take(twin)));
      }
    }
    const auto counted = hot.statistics();
    if (cached == 0) CHECK(counted.hits == 0);
    if (cached > 0) CHECK(counted.hits > 0);
  }
  CHECK(same_bits(take(table), take(twin)));  // the cache wrote its changes when it ended
}

}  // namespace

TEST_CASE("random verbs on cached tables give the bits of tables without a cache", "[cache][moves]") {
  namespace hana = boost::hana;
  constexpr auto elements = hana::tuple_t<float, ferry::half_t, std::int8_t, std::int64_t, triple>;
  std::uint64_t salt = 0;
  hana::for_each(elements, [&](auto element) {
    using T = typename decltype(element)::type;
    const std::size_t width = 1 + salt * 5 % 37;
    for (const std::size_t cached : cache_sizes(217)) {
      random_verbs<T, ferry::mapped_space>(217, width, cached, 1, ++salt);
      random_verbs<T, ferry::mapped_space>(217, width + 3, cached, 3, ++salt);
      random_verbs<T, ferry::mapped_space>(217, width, cached, 8, ++salt);
      random_verbs<T, ferry::mapped_space>(217, width, cached, 5, ++salt);
    }
  });
  for (const std::size_t width : {1, 4, 16, 33, 128})
    random_verbs<float, ferry::pinned_space>(1030, width, 100, 2, ++salt);
  random_verbs<float, ferry::mapped_space>(1, 8, 1, 1, ++salt);
}

TEMPLATE_TEST_CASE("gathers from rows that are not counted find hits and misses", "[cache][moves]",
                   std::uint8_t, float, double) {
  std::uint64_t salt = 3300;
  for (const std::size_t width : {1, 3, 31, 32, 33, 64, 65}) {
    CAPTURE(width);
    auto random = generator(++salt);
    const exec_space exec;
    const std::size_t rows = 700, cached = 90;
    const auto start = any_values<TestType>(random, rows * width);
    auto table = make<ferry::mapped_space>("table", rows, width, start);
    auto twin = make<ferry::mapped_space>("twin", rows, width, start);
    ferry::cached_table hot(table, ferry::cache::first{cached});
    std::uint64_t hits = 0, misses = 0;
    for (const std::size_t n : {1, 15, 16, 17, 255, 256, 257, 1000}) {
      CAPTURE(n);
      std::vector<std::int64_t> ids(n);
      for (auto& row : ids) {
        row = static_cast<std::int64_t>(random() % (random() % 2 == 0 ? cached : rows + 20));
        if (random() % 30 == 0) row = -1;
        if (row >= 0 && row < static_cast<std::int64_t>(rows))
          ++(row < static_cast<std::int64_t>(cached) ? hits : misses);
      }
      const auto input = any_values<TestType>(random, n * width);
      auto batch = make<ferry::device_space>("batch", n, width, input);
      auto second = make<ferry::device_space>("other", n, width, input);
      ferry::gather(exec, hot, ids, batch, ferry::bounds::skip{}).wait();
      ferry::gather(exec, twin, ids, second, ferry::bounds::skip{}).wait();
      CHECK(same_bits(take(batch), take(second)));
      CHECK(hot.statistics().hits == hits);
      CHECK(hot.statistics().misses == misses);
    }
    std::vector<std::int32_t> bad{5, 700, 3};
    auto batch = make<ferry::device_space>("batch", 3, width, any_values<TestType>(random, 3 * width));
    CHECK_THROWS_AS(ferry::gather(exec, hot, bad, batch).wait(), ferry::out_of_range);
  }
}

}  // namespace ferry_test::moves_test
