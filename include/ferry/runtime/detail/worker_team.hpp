// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/runtime/detail/worker_pool.hpp>

#include <exception>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>

namespace ferry::detail {

/// The calling thread and helpers of the pool, which share one piece of work. The calling thread must be able
/// to do the work alone: there may be no helpers, or they may start late. Helpers are woken by the
/// constructor or hire(), and return to the pool with dismiss() or the destructor.
class worker_team {
 public:
  worker_team() = default;  ///< the calling thread alone
  worker_team(int helpers, int most) { hire(helpers, most); }
  worker_team(const worker_team&) = delete;
  worker_team& operator=(const worker_team&) = delete;
  ~worker_team() { dismiss(); }

  /// For a worker team without helpers: takes at most `helpers` of a pool of at most `most` threads, and at
  /// least one where a thread can be started.
  void hire(int helpers, int most) {
    if (helpers <= 0) return;
    pool_ = worker_pool::get();
    if (!pool_->has_threads()) return;
    first_ = pool_->hire(helpers, most);
    for (worker_thread* each = first_; each != nullptr; each = each->next) ++helpers_;
  }
  [[nodiscard]] int helpers() const { return helpers_; }

  /// Calls work(worker) for each worker in [0, helpers()], with 0 in the calling thread. Returns when all
  /// have ended. Rethrows the first error.
  template <class Work>
  void run(const Work& work) {
    start(work);
    attempt(work, 0);
    finish();
  }

  /// The helpers' part of run(). Returns at once; `work` must live until finish().
  template <class Work>
  void start(const Work& work) {
    work_ = &work;
    int worker = 0;
    for (worker_thread* each = first_; each != nullptr; each = each->next)
      each->begin(
          [](void* self, int which) noexcept {
            auto& of = *static_cast<worker_team*>(self);
            of.attempt(*static_cast<const Work*>(of.work_), which);
          },
          this, ++worker);
    started_ = true;
  }
  void finish() {
    wait();
    if (first_error_ != nullptr) std::rethrow_exception(std::exchange(first_error_, nullptr));
  }

  /// Waits for the helpers and gives them back. Their errors are dropped.
  void dismiss() {
    wait();
    if (first_ != nullptr) pool_->give_back(std::exchange(first_, nullptr));
    helpers_ = 0;
    pool_ = nullptr;
    first_error_ = nullptr;
  }

 private:
  template <class Work>
  void attempt(const Work& work, int worker) noexcept {
    try {
      work(worker);
    } catch (...) {
      const std::lock_guard lock(guard_);
      if (first_error_ == nullptr) first_error_ = std::current_exception();
    }
  }
  void wait() {
    if (!std::exchange(started_, false)) return;
    for (worker_thread* each = first_; each != nullptr; each = each->next) each->wait();
  }

  std::shared_ptr<worker_pool> pool_;
  worker_thread* first_ = nullptr;
  int helpers_ = 0;
  bool started_ = false;
  const void* work_ = nullptr;
  std::mutex guard_;
  std::exception_ptr first_error_;
};

}  // namespace ferry::detail
