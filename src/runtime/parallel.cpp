// SPDX-License-Identifier: Apache-2.0
#include <ferry/runtime/detail/parallel.hpp>

#include "processors.hpp"
#include "worker_pool.hpp"

#include <ferry/runtime/detail/worker_team.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <memory>
#include <new>
#include <utility>

namespace ferry::detail {

namespace {

void hire_helpers(worker_team& team, int helpers, const thread_choice& threads) {
  if (helpers <= 0) return;
  if (threads.helpers == helper_threads::pooled) return team.hire(helpers, threads.most);
  std::shared_ptr<worker_pool> pool;
  try {
    pool = threads.helpers == helper_threads::temporary
               ? std::make_shared<worker_pool>()
               : std::make_shared<worker_pool>(processor_set::of_thread());
  } catch (const std::bad_alloc&) {  // the calling thread works alone
    return;
  }
  team.hire(std::move(pool), helpers, helpers);
}

}  // namespace

thread_choice pooled_threads() {
  return {std::max(1, static_cast<int>(Kokkos::DefaultHostExecutionSpace().concurrency())),
          helper_threads::pooled};
}

void parallel(std::int64_t items, std::int64_t piece, const thread_choice& threads,
              function_ref<void(front_queue& pieces, int number)> worker) {
  if (items <= 0) return;
  front_queue pieces(items, piece);
  worker_team team;
  const auto workers = std::min<std::int64_t>(threads.most, (items + piece - 1) / piece);
  hire_helpers(team, static_cast<int>(workers) - 1, threads);
  team.run([&](int number) {
    try {
      worker(pieces, number);
    } catch (...) {
      pieces.stop();
      throw;
    }
  });
}

void parallel(std::int64_t items, std::int64_t piece,
              function_ref<void(std::int64_t first, std::int64_t count)> work) {
  parallel(items, piece, pooled_threads(), [&](front_queue& pieces, int) {
    for (std::int64_t first = 0, count = 0; pieces.take(first, count);) work(first, count);
  });
}

}  // namespace ferry::detail
