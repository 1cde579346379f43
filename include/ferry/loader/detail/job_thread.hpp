// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/runtime/detail/processors.hpp>
#include <ferry/runtime/detail/worker_thread.hpp>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

namespace ferry::detail {

/// A thread that does jobs in order. A job does not throw.
class job_thread {
 public:
  job_thread();
  job_thread(const job_thread&) = delete;
  job_thread& operator=(const job_thread&) = delete;
  /// Does the jobs that are left.
  ~job_thread();
  /// Adds a job. Returns its number.
  std::int64_t put(std::function<void()> job);
  /// Blocks until the job with that number, and those before it, are done.
  void wait_for(std::int64_t number);

 private:
  void run() noexcept;

  std::mutex guard_;
  std::condition_variable changed_;
  std::vector<std::function<void()>> jobs_;
  std::int64_t put_ = 0, done_ = 0;
  bool ends_ = false;
  processor_set where_;
  worker_thread thread_;
};

}  // namespace ferry::detail
