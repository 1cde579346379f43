// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "processors.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace ferry::detail {

/// A thread for one piece of work at a time. After each it stays awake for a short time, for the next verb,
/// then sleeps. One user at a time.
class worker_thread {
 public:
  using work = void (*)(void* context, int worker) noexcept;

  /// Throws std::system_error if the system starts no more threads.
  explicit worker_thread(const processor_set& processors);
  worker_thread(const worker_thread&) = delete;
  worker_thread& operator=(const worker_thread&) = delete;
  ~worker_thread();

  /// Wakes the thread for work that comes soon.
  void call();
  /// Starts work(context, worker).
  void begin(work function, void* context, int worker);
  /// Waits until the work has ended.
  void wait();

  worker_thread* next = nullptr;  ///< in the list of its owner

 private:
  enum class state { idle, busy, leaving };
  using clock = std::chrono::steady_clock;
  static constexpr int spins = 64;
  static constexpr int patience = 1 << 12;
  static constexpr std::chrono::microseconds awake{200};

  [[nodiscard]] bool is_busy() const { return state_.load(std::memory_order_acquire) == state::busy; }

  void become(state next_state);

  void run();

  /// Waits for the next piece of work. Returns true if the thread is to end.
  bool next_is_to_leave();

  const processor_set& processors_;
  std::mutex guard_;
  std::condition_variable wake_, ended_;
  std::atomic<state> state_{state::idle};
  bool asleep_ = false;
  bool awaited_ = false;
  std::uint64_t calls_ = 0;
  std::uint64_t heard_ = 0;  ///< calls that work or a look for work has followed
  work work_ = nullptr;
  void* context_ = nullptr;
  int worker_ = 0;
  std::jthread thread_;  // ends first: it uses the others
};

}  // namespace ferry::detail
