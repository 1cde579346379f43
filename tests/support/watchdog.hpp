// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

namespace ferry_test {

/// Ends the program with a message where what it watches hangs, so that the tests after it are not waited
/// for in vain.
class watchdog {
 public:
  explicit watchdog(const char* label, std::chrono::seconds most = std::chrono::seconds(60))
      : thread_([this, label, most] {
          std::unique_lock lock(guard_);
          if (ended_.wait_for(lock, most, [this] { return is_over_; })) return;
          std::fprintf(stderr, "%s: no end within %lld s\n", label, static_cast<long long>(most.count()));
          std::_Exit(1);
        }) {}
  watchdog(const watchdog&) = delete;
  watchdog& operator=(const watchdog&) = delete;
  ~watchdog() {
    {
      const std::lock_guard lock(guard_);
      is_over_ = true;
    }
    ended_.notify_one();
    thread_.join();
  }

 private:
  std::mutex guard_;
  std::condition_variable ended_;
  bool is_over_ = false;
  std::thread thread_;
};

}  // namespace ferry_test
