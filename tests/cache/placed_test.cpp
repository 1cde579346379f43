// SPDX-License-Identifier: Apache-2.0
#include "cache/cache_kit.hpp"

#include <ferry/cache.hpp>

#include <numeric>

/// The kernel of writing verbs as the threads of a device run it, in any order: each row once, hits by their
/// own threads and misses by the first ones. A host runs it by rows otherwise.
namespace ferry_test::placed_test {

namespace {

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
      std::vector<std::int64_t> codes(n);
      detail::begin_batch(call, hot.core(), plan.storage(), true);
      const auto missed = detail::empty_lists(call, count);
      const auto& store = *plan.storage();
      detail::find_places(
          call, hot.core(),
          kernels::counted_segments{store.unique_rows, store.segment_begin, store.unique_count}, count,
          detail::codes_of_rows(hot.core()), false, true, codes.data(), missed);
      exec.fence("lists");
      const auto values = detail::read_only(ferry::make_ref(batch));
      auto source = detail::plan_source<sum, float>(call, "ferry::test", plan, values);
      detail::sum_long<float>(call, "ferry::test", store, values, kernels::column_range{0, values.width()},
                              values.width(), true, source);
      using job_type = detail::add_job<float, ferry::mapped_space>;
      const job_type plain{hot.ref()};
      const auto rows_of_job = detail::address_slots(hot.core(), plain, codes.data(), missed);
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

}  // namespace

TEST_CASE("threads of a device change each row of a batch once", "[cache][placed]") { on_host<exec_space>(); }

}  // namespace ferry_test::placed_test
