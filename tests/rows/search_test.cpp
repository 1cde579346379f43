// SPDX-License-Identifier: Apache-2.0
#include "support/oracle.hpp"
#include "support/test.hpp"

/// Small batches without a plan, which a device searches in one launch: the bits of the same verb with a plan, and
/// what plain loops give. Sizes straddle the warps, the teams and the largest searched batch; a host, which searches
/// nothing, takes some of them.
namespace ferry_test::search_test {

using device = ferry::device_space;

const std::vector<std::size_t> sizes =
    ferry::detail::is_host_exec<exec_space>
        ? std::vector<std::size_t>{1, 33, 1025, 4097}
        : std::vector<std::size_t>{1,    2,    31,   32,   33,   255,  257,  1023, 1024,
                                   1025, 2047, 2048, 2049, 4095, 4096, 4097, 12289};

/// Batches whose rows come once, a few times, or all of them alike.
std::vector<std::vector<std::int32_t>> batches(auto& random, std::size_t n, std::size_t rows) {
  std::vector<std::vector<std::int32_t>> lists{indices<std::int32_t>(random, n, rows),
                                               indices<std::int32_t>(random, n, 7),
                                               std::vector<std::int32_t>(n, 5)};
  for (std::size_t p = 0; p < n; p += 33) lists[0][p] = 11;
  return lists;
}

template <class T, class Call>
std::vector<T> written(std::size_t rows, std::size_t width, const std::vector<T>& content, const Call& call) {
  auto table = make<device>("weights", rows, width, content);
  call(table);
  return take(table);
}

TEMPLATE_TEST_CASE("small batches without a plan give the bits of a plan", "[scatter][search]", float,
                   ferry::half_t, std::int32_t) {
  auto random = generator(191);
  const exec_space exec;
  constexpr std::size_t rows = 3000;
  for (const std::size_t n : sizes)
    for (const std::size_t width : {1u, 4u, 8u, 33u, 132u}) {
      const auto content = values<TestType>(random, rows * width);
      const auto batch = values<TestType>(random, n * width);
      const auto values_array = make<device>("values", n, width, batch);
      for (const auto& ids : batches(random, n, rows)) {
        CAPTURE(n, width, ids.back());
        const auto plan = ferry::make_plan(exec, ids, rows);
        const auto check = [&](auto duplicates) {
          CAPTURE(duplicates.name);
          const auto searched = written(rows, width, content, [&](auto& table) {
            ferry::scatter(exec, table, ids, values_array, duplicates, ferry::path::direct{}).wait();
          });
          const auto planned = written(rows, width, content, [&](auto& table) {
            ferry::scatter(exec, table, plan, values_array, duplicates, ferry::path::direct{}).wait();
          });
          CHECK(same_bits(searched, planned));
          return searched;
        };
        CHECK(close(check(ferry::duplicates::last{}),
                    scattered(content, width, ids, batch, false, "duplicates::last")));
        CHECK(close(check(ferry::duplicates::first{}),
                    scattered(content, width, ids, batch, false, "duplicates::first")));
        check(ferry::duplicates::sum{});
        check(ferry::duplicates::mean{});
        const auto searched = written(rows, width, content, [&](auto& table) {
          ferry::scatter_add(exec, table, ids, values_array, ferry::path::direct{}).wait();
        });
        const auto planned = written(rows, width, content, [&](auto& table) {
          ferry::scatter_add(exec, table, plan, values_array, ferry::path::direct{}).wait();
        });
        CHECK(same_bits(searched, planned));
      }
    }
}

TEST_CASE("small batches with bad indices", "[scatter][search]") {
  auto random = generator(192);
  const exec_space exec;
  constexpr std::size_t rows = 500, width = 8;
  const auto content = values<float>(random, rows * width);
  for (const std::size_t n : {2u, 40u, 1000u, 4096u}) {
    CAPTURE(n);
    const auto batch = values<float>(random, n * width);
    const auto values_array = make<device>("values", n, width, batch);
    auto ids = indices<std::int64_t>(random, n, rows);
    ids[n - 1] = -3;
    ids[n / 2] = rows;
    auto weights = make<device>("weights", rows, width, content);
    const auto said = [](const auto& call) {
      try {
        call().wait();
      } catch (const ferry::out_of_range& lost) {
        return std::string(lost.what());
      }
      return std::string();
    };
    for (const std::string& text :
         {said([&] { return ferry::scatter(exec, weights, ids, values_array); }),
          said([&] { return ferry::scatter_add(exec, weights, ids, values_array); })}) {
      CHECK_THAT(text, ContainsSubstring(std::to_string(n / 2)));
      CHECK_THAT(text, ContainsSubstring(std::to_string(rows)));
    }
    CHECK(take(weights) == content);
    const auto skipped = written(rows, width, content, [&](auto& table) {
      ferry::scatter(exec, table, ids, values_array, ferry::bounds::skip{}).wait();
    });
    CHECK(close(skipped, scattered(content, width, ids, batch, false, "duplicates::last", on_bad::leave)));
    const auto clamped = written(rows, width, content, [&](auto& table) {
      ferry::scatter(exec, table, ids, values_array, ferry::bounds::clamp{}).wait();
    });
    CHECK(close(clamped, scattered(content, width, ids, batch, false, "duplicates::last", on_bad::clamp)));
  }
}

}  // namespace ferry_test::search_test
