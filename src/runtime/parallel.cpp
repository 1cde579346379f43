// SPDX-License-Identifier: Apache-2.0
#include <ferry/runtime/detail/parallel.hpp>

#include "worker_pool.hpp"

#include <ferry/runtime/detail/worker_team.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <exception>
#include <memory>
#include <mutex>
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

void worker_team::hire(int helpers, int most) {
  if (helpers > 0) hire(worker_pool::get(), helpers, most);
}

void worker_team::hire(std::shared_ptr<worker_pool> pool, int helpers, int most) {
  pool_ = std::move(pool);
  if (!pool_->has_threads()) return;
  first_ = pool_->hire(helpers, most);
  for (const worker_thread* helper = first_; helper != nullptr; helper = helper->next) ++helpers_;
}

void worker_team::run(work task) {
  start(task);
  attempt(0);
  finish();
}

void worker_team::start(work task) {
  task_ = task;
  int worker = 0;
  for (worker_thread* helper = first_; helper != nullptr; helper = helper->next)
    helper->begin([](void* self, int number) noexcept { static_cast<worker_team*>(self)->attempt(number); },
                  this, ++worker);
  started_ = true;
}

void worker_team::finish() {
  wait();
  if (first_error_ != nullptr) std::rethrow_exception(std::exchange(first_error_, nullptr));
}

void worker_team::dismiss() {
  wait();
  worker_thread* const hired = std::exchange(first_, nullptr);
  if (hired != nullptr && pool_->has_threads()) pool_->give_back(hired);
  helpers_ = 0;
  pool_ = nullptr;
  first_error_ = nullptr;
}

void worker_team::attempt(int worker) noexcept {
  try {
    (*task_)(worker);
  } catch (...) {
    const std::lock_guard lock(guard_);
    if (first_error_ == nullptr) first_error_ = std::current_exception();
  }
}

void worker_team::wait() {
  if (!std::exchange(started_, false)) return;
  if (first_ == nullptr || !pool_->has_threads()) return;  // a child of fork() has no helpers to wait for
  for (worker_thread* helper = first_; helper != nullptr; helper = helper->next) helper->wait();
}

}  // namespace ferry::detail
