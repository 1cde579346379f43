// SPDX-License-Identifier: Apache-2.0
#include <ferry/runtime/detail/worker_team.hpp>

#include "worker_pool.hpp"
#include "worker_thread.hpp"

#include <exception>
#include <mutex>
#include <utility>

namespace ferry::detail {

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
