// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/dynamic_array.hpp>
#include <ferry/memory/detail/thread_signal.hpp>
#include <ferry/runtime/detail/processors.hpp>
#include <ferry/runtime/detail/worker_thread.hpp>

#include <cstdint>
#include <mutex>
#include <utility>

namespace ferry::detail {

/// A thread that does jobs in order. `Job` is called without arguments and does not throw.
template <class Job>
class job_thread {
 public:
  job_thread() : where_(processor_set::of_process()), thread_(where_) {
    thread_.begin([](void* self, int) noexcept { static_cast<job_thread*>(self)->run(); }, this, 0);
  }
  job_thread(const job_thread&) = delete;
  job_thread& operator=(const job_thread&) = delete;
  /// Does the jobs that are left.
  ~job_thread() {
    {
      const std::lock_guard lock(guard_);
      ends_ = true;
    }
    changed_.notify_all();
    thread_.wait();
  }
  /// Adds a job. Returns its number.
  std::int64_t put(Job job) {
    std::int64_t number = 0;
    {
      const std::lock_guard lock(guard_);
      jobs_.push_back(std::move(job));
      number = ++put_;
    }
    changed_.notify_all();
    return number;
  }
  /// Blocks until the job with that number, and those before it, are done.
  void wait_for(std::int64_t number) {
    std::unique_lock lock(guard_);
    changed_.wait(lock, [&] { return done_ >= number; });
  }

 private:
  void run() noexcept {
    std::unique_lock lock(guard_);
    while (true) {
      changed_.wait(lock, [this] { return ends_ || !jobs_.empty(); });
      if (jobs_.empty()) return;
      {
        const Job job = std::move(jobs_.front());
        jobs_.erase(jobs_.begin());
        lock.unlock();
        job();
      }
      lock.lock();
      ++done_;
      changed_.notify_all();
    }
  }

  std::mutex guard_;
  thread_signal changed_;
  dynamic_array<Job> jobs_;
  std::int64_t put_ = 0, done_ = 0;
  bool ends_ = false;
  processor_set where_;
  worker_thread thread_;
};

}  // namespace ferry::detail
