// SPDX-License-Identifier: Apache-2.0
#include "cache/cache_kit.hpp"

#include <ferry/cache/cached_table.hpp>
#include <ferry/cache/explain.hpp>
#include <ferry/rows/init.hpp>

#include <catch2/catch_test_macros.hpp>

#include <atomic>
#include <chrono>
#include <numeric>
#include <string_view>
#include <thread>
#include <utility>

/// Several host threads that use one cached table.
namespace ferry_test::threads_test {

/// Threads that read a policy, and uses of one that another thread was about to replace.
inline std::atomic<int> readers{0}, overlaps{0};

/// A policy with memory of its own, which must not be replaced while it is read.
struct listed {
  static constexpr std::string_view name = "listed";
  static constexpr bool counts_rows = false;
  std::vector<std::int64_t> list;

  explicit listed(std::size_t most) : list(most) { std::iota(list.begin(), list.end(), 0); }
  listed(const listed&) = default;
  listed(listed&&) = default;
  listed& operator=(const listed&) = default;
  listed& operator=(listed&& source) noexcept {
    if (readers != 0) ++overlaps;
    list = std::move(source.list);
    return *this;
  }
  ~listed() = default;

  [[nodiscard]] std::int64_t most_rows(std::int64_t) const { return static_cast<std::int64_t>(list.size()); }
  [[nodiscard]] std::int64_t interval() const { return 0; }
  [[nodiscard]] std::vector<std::int64_t> rows_from_start(std::int64_t) const { return list; }
  [[nodiscard]] listed resized(std::int64_t most) const {
    ++readers;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    listed result(static_cast<std::size_t>(most));
    --readers;
    return result;
  }
};

namespace {

struct row_number {
  KOKKOS_FUNCTION float operator()(std::int64_t row, std::int64_t) const { return static_cast<float>(row); }
};

constexpr std::size_t rows = 200, width = 4;

template <class Act>
void by_threads(int count, const Act& act) {
  std::vector<std::thread> threads;
  for (int t = 0; t < count; ++t) threads.emplace_back([&act, t] { act(t); });
  for (auto& thread : threads) thread.join();
}

}  // namespace

// Threads of the backend Threads can't use Kokkos.
#ifndef KOKKOS_ENABLE_THREADS
TEST_CASE("threads that resize a cached table replace its policy one after the other", "[cache][threads]") {
  const Kokkos::DefaultExecutionSpace exec;
  ferry::tensor<float, ferry::mapped_space> table("t", rows, width);
  ferry::init::zeros(exec, table);
  ferry::cached_table hot(table, listed(3));
  by_threads(3, [&](int thread) {
    for (int i = 0; i < 100; ++i) hot.resize((i * 7 + thread * 31) % 150);
  });
  CHECK(overlaps == 0);
  hot.resize(5);
  CHECK(cached_rows(hot) == std::vector<std::int64_t>{0, 1, 2, 3, 4});
}

TEST_CASE("threads call all members of a cached table while others resize it", "[cache][threads]") {
  const Kokkos::DefaultExecutionSpace exec;
  ferry::tensor<float, ferry::mapped_space> table("t", rows, width);
  ferry::init::custom(exec, table, row_number{});
  ferry::cached_table hot(table, ferry::cache::frequency{.rows = 20, .refresh = 2});
  std::atomic<int> wrong{0};
  by_threads(4, [&](int thread) {
    const Kokkos::DefaultExecutionSpace instance;
    std::mt19937_64 random(static_cast<std::uint64_t>(thread) + 1);
    ferry::tensor<float, ferry::mapped_space> out("out", 16, width);
    for (int i = 0; i < 40; ++i) {
      switch ((i + thread) % 4) {
        case 0:
          hot.resize(random() % 150);
          break;
        case 1:
          hot.flush(instance).wait();
          break;
        case 2:
          if (hot.statistics().hit_rate() > 1 || hot.rows() != rows || hot.label() != "t") ++wrong;
          if (hot.bytes() == 0 && hot.slots() != 0) ++wrong;
          if (ferry::explain(ferry::verb::gather, hot, 16, instance).to_string().empty()) ++wrong;
          break;
        default: {
          const auto ids = indices<std::int32_t>(random, 16, rows);
          ferry::gather(instance, hot, ids, out).wait();
          for (std::size_t p = 0; p < ids.size(); ++p)
            if (take(out)[p * width] != static_cast<float>(ids[p])) ++wrong;
        }
      }
    }
  });
  CHECK(wrong == 0);
}
#endif

}  // namespace ferry_test::threads_test
