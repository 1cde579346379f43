// SPDX-License-Identifier: Apache-2.0
#include <ferry/runtime/detail/worker_team.hpp>

#include "worker_pool.hpp"
#include "worker_thread.hpp"

#include <exception>
#include <mutex>
#include <utility>

namespace ferry::detail {

void worker_team::hire(int helpers, int most) {
  if (helpers <= 0) return;
  pool_ = worker_pool::get();
  if (!pool_->has_threads()) return;
  first_ = pool_->hire(helpers, most);
  for (const worker_thread* each = first_; each != nullptr; each = each->next) ++helpers_;
}

void worker_team::run(work task) {
  start(task);
  attempt(0);
  finish();
}

void worker_team::start(work task) {
  task_ = task;
  int worker = 0;
  for (worker_thread* each = first_; each != nullptr; each = each->next)
    each->begin([](void* self, int which) noexcept { static_cast<worker_team*>(self)->attempt(which); }, this,
                ++worker);
  started_ = true;
}

void worker_team::finish() {
  wait();
  if (first_error_ != nullptr) std::rethrow_exception(std::exchange(first_error_, nullptr));
}

void worker_team::dismiss() {
  wait();
  if (first_ != nullptr) pool_->give_back(std::exchange(first_, nullptr));
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
  for (worker_thread* each = first_; each != nullptr; each = each->next) each->wait();
}

}  // namespace ferry::detail
