// SPDX-License-Identifier: Apache-2.0
#include "cache/cache_kit.hpp"
#include "support/test.hpp"

#include <ferry/cache/verbs.hpp>
#include <ferry/io/file_table.hpp>
#include <ferry/io/save_npy.hpp>

#include <filesystem>

/// Cached tables in pageable memory and over files. A device that does not reach the memory has their rows
/// brought by host threads; a host runs the same code where a test asks for it.
namespace ferry_test::pageable_test {

template <class Hot>
void by_host_threads(Hot& hot) {
  if (hot.core().stage == nullptr) hot.core().stage = &ferry::detail::stage_rows<exec_space>;
}

/// Gathers by every way from a cached table and from `twin`, which has the same rows.
template <class Out, class Hot, class Twin>
void random_gathers(std::mt19937_64& random, Hot& hot, const Twin& twin, std::size_t rows, std::size_t width,
                    int calls) {
  const exec_space exec;
  for (int call = 0; call < calls; ++call) {
    CAPTURE(call);
    const std::size_t n = random() % 300;
    const auto ids = skewed<std::int32_t>(random, n, rows, call < calls / 2 ? 1 : rows / 2, rows / 9 + 1);
    auto mine = make<ferry::device_space>("mine", n, width, std::vector<Out>(n * width, Out(7)));
    auto twin_out = make<ferry::device_space>("its", n, width, std::vector<Out>(n * width, Out(8)));
    auto local = make<ferry::pinned_space>("here", n, width, std::vector<Out>(n * width, Out(9)));
    const auto plan = ferry::make_plan(exec, ids, rows);
    if (call % 2 == 0) {
      ferry::gather(exec, hot, ids, mine).wait();
      ferry::gather(exec, hot, ids, local).wait();
    } else {
      ferry::gather(exec, hot, plan, mine).wait();
      ferry::gather(exec, hot, plan, local).wait();
    }
    ferry::gather(exec, twin, ids, twin_out).wait();
    REQUIRE(same_bits(take(mine), take(twin_out)));
    REQUIRE(same_bits(take(local), take(twin_out)));
  }
}

template <class T, class Out>
void gathers_of(std::size_t rows, std::size_t width, std::size_t cached, int refresh, bool staged,
                std::uint64_t salt) {
  CAPTURE(rows, width, cached, refresh, staged);
  auto random = generator(salt);
  const exec_space exec;
  auto table = make<ferry::pageable_space>("table", rows, width, values<T>(random, rows * width));
  auto twin = make<ferry::pageable_space>("twin", rows, width, take(table));
  ferry::cached_table hot(table, ferry::cache::frequency{.rows = cached, .refresh = refresh});
  if (staged) by_host_threads(hot);
  random_gathers<Out>(random, hot, twin, rows, width, 24);
  if (cached != 0) CHECK(hot.statistics().hits > 0);
  // Rows that are copied to the table are read again, through slots.
  auto next = make<ferry::pageable_space>("next", rows, width, values<T>(random, rows * width));
  ferry::copy(exec, next, hot).wait();
  ferry::copy(exec, next, twin).wait();
  random_gathers<Out>(random, hot, twin, rows, width, 6);
}

TEST_CASE("cached tables in pageable memory", "[cache][pageable]") {
  std::uint64_t salt = 7000;
  for (const bool staged : {false, true})
    for (const std::size_t cached : cache_sizes(260)) {
      gathers_of<float, float>(260, 16, cached, 1, staged, ++salt);
      gathers_of<float, double>(260, 7, cached, 5, staged, ++salt);
      gathers_of<ferry::half_t, ferry::half_t>(260, 5, cached, 8, staged, ++salt);
    }
}

TEST_CASE("rows of a list are loaded when the cache is made, and bad indices reported", "[cache][pageable]") {
  auto random = generator(7100);
  const exec_space exec;
  auto table = make<ferry::pageable_space>("table", 90, 12, values<float>(random, 90 * 12));
  auto twin = make<ferry::pageable_space>("table", 90, 12, take(table));
  ferry::cached_table hot(table, ferry::cache::fixed{{3, 88, 40}});
  by_host_threads(hot);
  random_gathers<float>(random, hot, twin, 90, 12, 4);
  auto mine = make<ferry::device_space>("batch", 4, 12, std::vector<float>(48, 1.0f));
  auto twin_out = make<ferry::device_space>("batch", 4, 12, std::vector<float>(48, 1.0f));
  const std::vector<int> bad{3, 90, 5, 88};
  CHECK_THROWS_AS(ferry::gather(exec, hot, bad, mine).wait(), ferry::out_of_range);
  CHECK_THROWS_AS(ferry::gather(exec, twin, bad, twin_out).wait(), ferry::out_of_range);
  CHECK(same_bits(take(mine), take(twin_out)));
  ferry::gather(exec, hot, bad, mine, ferry::bounds::clamp{}).wait();
  ferry::gather(exec, twin, bad, twin_out, ferry::bounds::clamp{}).wait();
  CHECK(same_bits(take(mine), take(twin_out)));
}

TEST_CASE("a resize that can't load its rows changes nothing", "[cache][pageable]") {
  auto random = generator(7300);
  auto table = make<ferry::pageable_space>("table", 90, 12, values<float>(random, 90 * 12));
  auto twin = make<ferry::pageable_space>("twin", 90, 12, take(table));
  ferry::cached_table hot(table, ferry::cache::first{20});
  by_host_threads(hot);
  const auto stage = hot.core().stage;
  random_gathers<float>(random, hot, twin, 90, 12, 4);
  const auto before = hot.statistics();
  const auto bytes = hot.bytes();
  hot.core().stage = [](void*, const ferry::detail::row_cache&, bool) {
    throw ferry::budget_exceeded("ferry: none left");
  };
  for (const int most : {60, 5}) CHECK_THROWS_AS(hot.resize(most), ferry::budget_exceeded);
  hot.core().stage = stage;
  CHECK(hot.slots() == 20);
  CHECK(hot.bytes() == bytes);
  CHECK(hot.statistics().hits == before.hits);
  random_gathers<float>(random, hot, twin, 90, 12, 4);
  CHECK(hot.statistics().hits > before.hits);
  hot.resize(60);
  CHECK(hot.slots() == 60);
  random_gathers<float>(random, hot, twin, 90, 12, 4);
}

TEST_CASE("a table over a file is cached", "[cache][pageable][file]") {
  auto random = generator(7200);
  const auto path = std::filesystem::temp_directory_path() /
                    ("ferry_cached_" + std::to_string(Catch::getSeed()) + "_" + std::to_string(random()));
  const std::size_t rows = 400, width = 10;
  auto twin = make<ferry::pageable_space>("twin", rows, width, values<float>(random, rows * width));
  ferry::io::save_npy(path.string(), twin);
  {
    auto features = ferry::io::map_npy<float>(path.string(), "features");
    for (const bool staged : {false, true}) {
      CAPTURE(staged);
      ferry::cached_table hot(features, ferry::cache::frequency{.rows = 40, .refresh = 4});
      if (staged) by_host_threads(hot);
      random_gathers<float>(random, hot, twin, rows, width, 20);
      CHECK(hot.statistics().hits > 0);
      CHECK(hot.label() == "features");
      const auto some = ferry::gather<ferry::pinned_space>(exec_space{}, hot, std::vector<int>{1, 399}).get();
      CHECK(take(some)[width] == take(twin)[399 * width]);
    }
  }
  std::filesystem::remove(path);
}

}  // namespace ferry_test::pageable_test
