// SPDX-License-Identifier: Apache-2.0
#include "job_thread.hpp"

#include "../runtime/processors.hpp"
#include "../runtime/worker_pool.hpp"

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace ferry::detail {

class job_thread::queue {
 public:
  queue() : processors_(processor_set::of_process()), thread_(processors_) {
    thread_.begin([](void* self, int) noexcept { static_cast<queue*>(self)->run(); }, this, 0);
  }
  queue(const queue&) = delete;
  queue& operator=(const queue&) = delete;
  ~queue() {
    {
      const std::lock_guard lock(guard_);
      ends_ = true;
    }
    changed_.notify_all();
    thread_.wait();
  }

  std::int64_t put(std::function<void()> job) {
    std::int64_t number = 0;
    {
      const std::lock_guard lock(guard_);
      jobs_.push_back(std::move(job));
      number = ++submissions_;
    }
    changed_.notify_all();
    return number;
  }

  void wait_for(std::int64_t number) {
    std::unique_lock lock(guard_);
    changed_.wait(lock, [&] { return completions_ >= number; });
  }

 private:
  void run() noexcept {
    std::unique_lock lock(guard_);
    while (true) {
      changed_.wait(lock, [this] { return ends_ || !jobs_.empty(); });
      if (jobs_.empty()) return;
      {
        const std::function<void()> job = std::move(jobs_.front());
        jobs_.erase(jobs_.begin());
        lock.unlock();
        job();
      }
      lock.lock();
      ++completions_;
      changed_.notify_all();
    }
  }

  std::mutex guard_;
  std::condition_variable changed_;
  std::vector<std::function<void()>> jobs_;
  std::int64_t submissions_ = 0, completions_ = 0;
  bool ends_ = false;
  processor_set processors_;
  worker_thread thread_;
};

job_thread::job_thread() : queue_(std::make_unique<queue>()) {}

job_thread::~job_thread() = default;

std::int64_t job_thread::put(std::function<void()> job) { return queue_->put(std::move(job)); }

void job_thread::wait_for(std::int64_t number) { queue_->wait_for(number); }

}  // namespace ferry::detail
