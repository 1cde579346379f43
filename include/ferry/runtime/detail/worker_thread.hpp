#pragma once

#include <ferry/runtime/detail/processors.hpp>

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace ferry::detail {

/// Keeps signals meant for the process away from threads that are made while it lives; those that a thread
/// raises by what it does reach it.
class signals_elsewhere {
 public:
  signals_elsewhere() {
    sigset_t most;
    sigfillset(&most);
    for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPROF})
      sigdelset(&most, own);
    pthread_sigmask(SIG_BLOCK, &most, &before_);
  }
  signals_elsewhere(const signals_elsewhere&) = delete;
  signals_elsewhere& operator=(const signals_elsewhere&) = delete;
  ~signals_elsewhere() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

/// A thread that does one piece of work after the other. It stays awake for a while after each, for the next
/// call of a verb to find it so, then sleeps. One user at a time.
class worker_thread {
 public:
  using work = void (*)(void* context, int worker) noexcept;

  /// Throws std::system_error where the system starts no more threads.
  explicit worker_thread(const processor_set& where) : where_(where) {
    const signals_elsewhere blocked;
    thread_ = std::thread([this] { run(); });
  }
  worker_thread(const worker_thread&) = delete;
  worker_thread& operator=(const worker_thread&) = delete;
  ~worker_thread() {
    become(state::leaving);
    thread_.join();
  }

  /// Says that there will soon be work, so that it is awake by then.
  void call() {
    const std::lock_guard lock(guard_);
    ++calls_;
    if (asleep_) wake_.notify_one();
  }
  /// work(context, worker), from now on.
  void begin(work what, void* context, int worker) {
    work_ = what;
    context_ = context;
    worker_ = worker;
    become(state::busy);
  }
  /// Until the work has ended.
  void wait() {
    for (int looks = 0; looks < patience; ++looks) {
      if (!is_busy()) return;
      if (looks % spins == 0) std::this_thread::yield();
    }
    std::unique_lock lock(guard_);
    awaited_ = true;
    ended_.wait(lock, [&] { return !is_busy(); });
    awaited_ = false;
  }

  worker_thread* next = nullptr;  ///< in the list of whoever has it

 private:
  enum class state { idle, busy, leaving };
  using clock = std::chrono::steady_clock;
  static constexpr int spins = 64;
  static constexpr int patience = 1 << 12;
  static constexpr std::chrono::microseconds awake{200};

  [[nodiscard]] bool is_busy() const { return state_.load(std::memory_order_acquire) == state::busy; }

  void become(state next_state) {
    const std::lock_guard lock(guard_);
    state_.store(next_state, std::memory_order_release);
    if (next_state == state::busy) heard_ = calls_;
    if (next_state == state::idle) {
      if (awaited_) ended_.notify_one();
    } else if (asleep_) {
      wake_.notify_one();
    }
  }

  void run() {
    where_.take();
    while (!next_is_to_leave()) {
      work_(context_, worker_);
      become(state::idle);
    }
  }

  /// Waits for the next piece of work.
  bool next_is_to_leave() {
    while (true) {
      const auto until = clock::now() + awake;
      for (int looks = 1; looks % spins != 0 || clock::now() < until; ++looks) {
        const state now = state_.load(std::memory_order_acquire);
        if (now != state::idle) return now == state::leaving;
        if (looks % spins == 0) std::this_thread::yield();
      }
      std::unique_lock lock(guard_);
      asleep_ = true;
      wake_.wait(lock,
                 [&] { return state_.load(std::memory_order_relaxed) != state::idle || calls_ != heard_; });
      asleep_ = false;
      heard_ = calls_;
    }
  }

  const processor_set& where_;
  std::mutex guard_;
  std::condition_variable wake_, ended_;
  std::atomic<state> state_{state::idle};
  bool asleep_ = false;
  bool awaited_ = false;
  std::uint64_t calls_ = 0;
  std::uint64_t heard_ = 0;  ///< of them, those that were followed by work or by a look for it
  work work_ = nullptr;
  void* context_ = nullptr;
  int worker_ = 0;
  std::thread thread_;
};

}  // namespace ferry::detail
