// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

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
  class queue;
  std::unique_ptr<queue> queue_;
};

}  // namespace ferry::detail
