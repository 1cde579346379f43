// SPDX-License-Identifier: Apache-2.0
#include <ferry/loader/detail/job_thread.hpp>

#include <utility>

namespace ferry::detail {

job_thread::job_thread() : where_(processor_set::of_process()), thread_(where_) {
  thread_.begin([](void* self, int) noexcept { static_cast<job_thread*>(self)->run(); }, this, 0);
}

job_thread::~job_thread() {
  {
    const std::lock_guard lock(guard_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.wait();
}

std::int64_t job_thread::put(std::function<void()> job) {
  std::int64_t number = 0;
  {
    const std::lock_guard lock(guard_);
    jobs_.push_back(std::move(job));
    number = ++put_;
  }
  changed_.notify_all();
  return number;
}

void job_thread::wait_for(std::int64_t number) {
  std::unique_lock lock(guard_);
  changed_.wait(lock, [&] { return done_ >= number; });
}

void job_thread::run() noexcept {
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
    ++done_;
    changed_.notify_all();
  }
}

}  // namespace ferry::detail
