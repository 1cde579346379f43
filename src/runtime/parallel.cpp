// SPDX-License-Identifier: Apache-2.0
#include <ferry/runtime/detail/parallel.hpp>

#include "worker_pool.hpp"

#include <Kokkos_Core.hpp>

#include <dirent.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <system_error>
#include <utility>

namespace ferry::detail {

void parallel(std::int64_t items, std::int64_t piece, const thread_choice& threads,
              function_ref<void(front_queue& pieces, int number)> worker) {
  if (items <= 0) return;
  front_queue pieces(items, piece);
  worker_team team;
  const auto workers = std::min<std::int64_t>(threads.max_threads, (items + piece - 1) / piece);
  if (workers > 1)
    team.hire(threads.helpers == helper_threads::pooled ? worker_pool::get()
              : threads.helpers == helper_threads::temporary
                  ? std::make_shared<worker_pool>()
                  : std::make_shared<worker_pool>(processor_set::of_thread()),
              static_cast<int>(workers) - 1, threads.max_threads);
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
  const int threads = std::max(1, static_cast<int>(Kokkos::DefaultHostExecutionSpace().concurrency()));
  parallel(items, piece, {threads, helper_threads::pooled}, [&](front_queue& pieces, int) {
    for (std::int64_t first = 0, count = 0; pieces.take(first, count);) work(first, count);
  });
}

void worker_team::hire(int helpers, int max_threads) {
  if (helpers > 0) hire(worker_pool::get(), helpers, max_threads);
}

void worker_team::hire(std::shared_ptr<worker_pool> pool, int helpers, int max_threads) {
  pool_ = std::move(pool);
  if (!pool_->has_threads()) return;
  first_ = pool_->hire(helpers, max_threads);
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

std::shared_ptr<worker_pool> worker_pool::get() { return until_finalize<worker_pool>(); }

worker_thread* worker_pool::hire(int count, int max_threads) {
  worker_thread* hired = nullptr;
  {
    const std::lock_guard lock(guard_);
    for (int hired_count = 0; hired_count < count; ++hired_count) {
      worker_thread* thread = idle_;
      if (thread != nullptr)
        idle_ = thread->next;
      else if (hired_count == 0 || threads_.size() < static_cast<std::size_t>(max_threads))
        thread = make();
      if (thread == nullptr) break;
      thread->next = hired;
      hired = thread;
    }
  }
  for (worker_thread* thread = hired; thread != nullptr; thread = thread->next) thread->call();
  return hired;
}

void worker_pool::give_back(worker_thread* hired) {
  const std::lock_guard lock(guard_);
  while (hired != nullptr) {
    worker_thread* const thread = hired;
    hired = thread->next;
    thread->next = idle_;
    idle_ = thread;
  }
}

std::size_t worker_pool::size() const {
  const std::lock_guard lock(guard_);
  return threads_.size();
}

worker_thread* worker_pool::make() {
  try {
    if (threads_.empty() && processors_ == processor_set()) processors_ = processor_set::of_process();
    threads_.reserve(threads_.size() + 1);
    threads_.push_back(std::make_unique<worker_thread>(processors_));
    return threads_.back().get();
  } catch (const std::system_error&) {
  } catch (const std::bad_alloc&) {
  }
  return nullptr;
}

worker_thread::worker_thread(const processor_set& processors) : processors_(processors) {
  const signals_elsewhere blocked;
  thread_ = std::jthread([this] { run(); });
}

void worker_thread::call() {
  state expected = state::idle;
  if (state_.compare_exchange_strong(expected, state::called)) state_.notify_all();
}

void worker_thread::begin(work function, void* context, int worker) {
  work_ = function;
  context_ = context;
  worker_ = worker;
  become(state::busy);
}

void worker_thread::wait() {
  constexpr int patience = 1 << 12;
  for (int looks = 0; looks < patience; ++looks) {
    if (state_.load(std::memory_order_acquire) != state::busy) return;
    if (looks % spins == 0) std::this_thread::yield();
  }
  state_.wait(state::busy);
}

void worker_thread::become(state next_state) {
  state_.store(next_state);
  state_.notify_all();
}

void worker_thread::run() {
  processors_.take();
  for (state now = look(); now != state::leaving; now = look()) {
    state expected = state::called;
    if (now == state::busy) {
      work_(context_, worker_);
      become(state::idle);
    } else if (!state_.compare_exchange_strong(expected, state::idle)) {
      state_.wait(state::idle);
    }
  }
}

worker_thread::state worker_thread::look() const {
  using clock = std::chrono::steady_clock;
  const auto until = clock::now() + std::chrono::microseconds(200);
  for (int looks = 1; looks % spins != 0 || clock::now() < until; ++looks) {
    const state now = state_.load(std::memory_order_acquire);
    if (now == state::busy || now == state::leaving) return now;
    if (looks % spins == 0) std::this_thread::yield();
  }
  return state::idle;
}

processor_set processor_set::of_process() {
  struct closer {
    void operator()(DIR* open) const { closedir(open); }
  };
  processor_set processors;
  const std::unique_ptr<DIR, closer> tasks(opendir("/proc/self/task"));
  if (tasks == nullptr) return processors;
  while (const dirent* task = readdir(tasks.get())) {
    const auto id = static_cast<pid_t>(std::strtol(task->d_name, nullptr, 10));
    if (id > 0) processors.add(of_thread(id));
  }
  return processors;
}

processor_set processor_set::of_thread(pid_t id) {
  processor_set processors;
  if (sched_getaffinity(id, sizeof processors.bits_, reinterpret_cast<cpu_set_t*>(processors.bits_.data())) !=
      0)
    processors.bits_ = {};  // the thread has just ended
  return processors;
}

void processor_set::take() const {
  if (*this != processor_set())
    static_cast<void>(sched_setaffinity(0, sizeof bits_, reinterpret_cast<const cpu_set_t*>(bits_.data())));
}

void processor_set::add(const processor_set& added) {
  for (std::size_t i = 0; i < bits_.size(); ++i) bits_[i] |= added.bits_[i];
}

}  // namespace ferry::detail
