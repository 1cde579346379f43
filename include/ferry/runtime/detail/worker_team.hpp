// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/function_ref.hpp>

#include <exception>
#include <memory>
#include <mutex>
#include <optional>

namespace ferry::detail {

class worker_pool;
class worker_thread;

/// The calling thread and helpers of the pool, which share one piece of work. The calling thread must be able
/// to do the work alone: there may be no helpers, or they may start late. Helpers are woken by the
/// constructor or hire(), and return to the pool with dismiss() or the destructor.
class worker_team {
 public:
  using work = function_ref<void(int worker)>;

  worker_team() = default;  ///< the calling thread alone
  worker_team(int helpers, int most) { hire(helpers, most); }
  worker_team(const worker_team&) = delete;
  worker_team& operator=(const worker_team&) = delete;
  ~worker_team() { dismiss(); }

  /// For a worker team without helpers: takes at most `helpers` of a pool of at most `most` threads, and at
  /// least one if a thread can be started.
  void hire(int helpers, int most);
  /// Takes helpers of another pool, which may end with the worker team.
  void hire(std::shared_ptr<worker_pool> pool, int helpers, int most);
  [[nodiscard]] int helpers() const { return helpers_; }

  /// Calls task(worker) for each worker in [0, helpers()], with 0 in the calling thread. Returns when all
  /// have ended. Rethrows the first error.
  void run(work task);

  /// The helpers' part of run(). Returns at once; the callable must live until finish().
  void start(work task);
  void finish();

  /// Waits for the helpers and gives them back. Their errors are dropped.
  void dismiss();

 private:
  void attempt(int worker) noexcept;
  void wait();

  std::shared_ptr<worker_pool> pool_;
  worker_thread* first_ = nullptr;
  int helpers_ = 0;
  bool started_ = false;
  std::optional<work> task_;
  std::mutex guard_;
  std::exception_ptr first_error_;
};

}  // namespace ferry::detail
