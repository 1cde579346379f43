// SPDX-License-Identifier: Apache-2.0
#include "cache/cache_kit.hpp"
#include "support/test.hpp"

#include <ferry/cache.hpp>
#include <ferry/cache/cached_table.hpp>
#include <ferry/cache/explain.hpp>
#include <ferry/rows/init.hpp>

namespace ferry_test::threads_test {

// Several host threads that use one cached table.

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

struct row_number {
  KOKKOS_FUNCTION float operator()(std::int64_t row, std::int64_t) const { return static_cast<float>(row); }
};

constexpr std::size_t table_rows = 200, table_width = 4;

template <class Act>
void by_threads(int count, const Act& act) {
  std::vector<std::thread> threads;
  for (int t = 0; t < count; ++t) threads.emplace_back([&act, t] { act(t); });
  for (auto& thread : threads) thread.join();
}

// Threads of the backend Threads can't use Kokkos.
#ifndef KOKKOS_ENABLE_THREADS
TEST_CASE("threads that resize a cached table replace its policy one after the other", "[cache][threads]") {
  const Kokkos::DefaultExecutionSpace exec;
  ferry::tensor<float, ferry::mapped_space> table("t", table_rows, table_width);
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
  ferry::tensor<float, ferry::mapped_space> table("t", table_rows, table_width);
  ferry::init::custom(exec, table, row_number{});
  ferry::cached_table hot(table, ferry::cache::frequency{.rows = 20, .refresh = 2});
  std::atomic<int> wrong{0};
  by_threads(4, [&](int thread) {
    const Kokkos::DefaultExecutionSpace instance;
    std::mt19937_64 random(static_cast<std::uint64_t>(thread) + 1);
    ferry::tensor<float, ferry::mapped_space> out("out", 16, table_width);
    for (int i = 0; i < 40; ++i) {
      switch ((i + thread) % 4) {
        case 0:
          hot.resize(random() % 150);
          break;
        case 1:
          hot.flush(instance).wait();
          break;
        case 2:
          if (hot.statistics().hit_rate() > 1 || hot.rows() != table_rows || hot.label() != "t") ++wrong;
          if (hot.bytes() == 0 && hot.slots() != 0) ++wrong;
          if (ferry::explain(ferry::verb::gather, hot, 16, instance).to_string().empty()) ++wrong;
          break;
        default: {
          const auto ids = indices<std::int32_t>(random, 16, table_rows);
          ferry::gather(instance, hot, ids, out).wait();
          for (std::size_t p = 0; p < ids.size(); ++p)
            if (take(out)[p * table_width] != static_cast<float>(ids[p])) ++wrong;
        }
      }
    }
  });
  CHECK(wrong == 0);
}
#endif

// The kernel of writing verbs as the threads of a device run it, in any order: each row once, hits by their
// own threads and misses by the first ones. A host runs it by rows otherwise.

namespace detail = ferry::detail;
namespace kernels = ferry::kernels;
using sum = ferry::duplicates::sum;

template <class Tile>
void add_by_threads(std::size_t n, std::size_t width, std::size_t cached, std::uint64_t salt) {
  CAPTURE(n, width, cached);
  auto random = generator(salt);
  const exec_space exec;
  const std::size_t rows = 2 * n + 5;
  const auto start = values<float>(random, rows * width);
  auto table = make<ferry::mapped_space>("table", rows, width, start);
  auto twin = make<ferry::mapped_space>("twin", rows, width, start);
  {
    // The cached rows are neighbours, so misses are not spread evenly over the batch.
    ferry::cached_table hot(table, ferry::cache::first{cached});
    const auto ids = skewed<std::int64_t>(random, n, rows, 0, n / 4 + 1);
    auto batch = make<ferry::device_space>("batch", n, width, values<float>(random, n * width));
    const auto plan = ferry::make_plan(exec, ids, rows);
    {
      const detail::cache_use use(hot.core(), "scatter_add");
      detail::launch_context<exec_space> call(exec, "scatter_add");
      const auto count = static_cast<std::int64_t>(n);
      call.use(plan.storage());
      const auto missed = detail::empty_lists(call, count);
      const auto& store = *plan.storage();
      const auto* packed = detail::find_rows(
          call, hot.core(),
          kernels::counted_segments{store.unique_rows, store.segment_begin, store.unique_count},
          {count, detail::packing_of(hot.core()), true, missed}, plan.storage());
      exec.fence("lists");
      const auto values = detail::read_only(ferry::make_ref(batch));
      auto source = detail::plan_source<sum, float>(call, "ferry::test", plan, values);
      detail::sum_long<float>(call, "ferry::test", store, values, kernels::column_range{0, values.width()},
                              values.width(), true, source);
      using job_type = detail::add_job<float, ferry::mapped_space>;
      const job_type plain{hot.ref()};
      const auto rows_of_job = detail::address_slots(hot.core(), plain, packed, missed);
      const detail::addressed_job<job_type, detail::cached_addresser_for<job_type>> job(plain, rows_of_job);
      const auto kernel = job.template kernel<exec_space, sum, Tile, 0>(source, count, values);
      std::vector<std::int64_t> threads(n * static_cast<std::size_t>(kernel.per_item()) +
                                        kernels::missed_items::threads);
      std::iota(threads.begin(), threads.end(), 0);
      std::shuffle(threads.begin(), threads.end(), random);
      for (const auto thread : threads) kernel(thread);
      call.finish().wait();
      std::int64_t listed = 0;
      for (std::int64_t list = 0; list < kernels::missed_items::lists; ++list) {
        REQUIRE(missed.count(list) <= missed.room);
        listed += missed.count(list);
      }
      std::int64_t misses = 0;
      for (std::int64_t i = 0; i < plan.unique_count(); ++i)
        misses += store.unique_rows[i] >= static_cast<std::int64_t>(cached);
      CHECK(listed == misses);
    }
    ferry::scatter_add(exec, twin, plan, batch).wait();
  }
  CHECK(same_bits(take(table), take(twin)));
}

template <class Exec>
void on_host() {
  if constexpr (ferry::HostExecutionSpace<Exec>) {
    std::uint64_t salt = 9000;
    for (const std::size_t n : {1, 31, 33, 2048, 5000})
      for (const std::size_t part : {0, 1, 2, 8}) {
        add_by_threads<kernels::single_tile>(n, 3, part * n / 4, ++salt);
        add_by_threads<kernels::packed_tile>(n, 8, part * n / 4, ++salt);
      }
  } else {
    SUCCEED("a device runs this kernel in all other tests");
  }
}

TEST_CASE("threads of a device change each row of a batch once", "[cache][placed]") { on_host<exec_space>(); }

}  // namespace ferry_test::threads_test
