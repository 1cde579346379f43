#pragma once

#include <atomic>
#include <thread>

namespace ferry::detail {

/// A lock for sections of a few microseconds that the threads of a worker team enter frequently. With
/// std::mutex, waking a thread takes longer than the section. After some time a waiting thread yields, for
/// machines with fewer processors than threads. Use with std::lock_guard.
class spin_lock {
 public:
  void lock() {
    while (taken_.exchange(true, std::memory_order_acquire))
      for (int looks = 0; taken_.load(std::memory_order_relaxed); ++looks)
        if (looks >= patience) std::this_thread::yield();
  }
  void unlock() { taken_.store(false, std::memory_order_release); }

 private:
  static constexpr int patience = 1 << 12;

  std::atomic<bool> taken_{false};
};

}  // namespace ferry::detail
