// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/process_wide.hpp>

#include <sched.h>
#include <signal.h>
#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace ferry::detail {

/// A set of processors that threads may run on; empty if the system does not say.
class processor_set {
 public:
  /// The processors of all threads of the process. Those of the calling thread are too few: an OpenMP library
  /// binds the thread of main() to one processor, and new threads inherit the binding. Together, the threads
  /// of a host execution space have the processors that the user gave the process.
  static processor_set of_process();
  /// The processors of one thread; 0 for the calling thread.
  static processor_set of_thread(pid_t id = 0);

  /// Lets the calling thread run on the processors of the set. Changes nothing for an empty set.
  void take() const;

  void add(const processor_set& added);
  [[nodiscard]] bool operator==(const processor_set&) const = default;

 private:
  // More than any Linux kernel supports.
  alignas(cpu_set_t) std::array<unsigned long, 1024> bits_{};
};

/// Blocks signals to the process in threads that are made during its lifetime. Signals that a thread raises
/// itself still reach it.
class signals_elsewhere {
 public:
  signals_elsewhere() {
    sigset_t most;
    sigfillset(&most);
    for (const int raised : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPROF})
      sigdelset(&most, raised);
    pthread_sigmask(SIG_BLOCK, &most, &before_);
  }
  signals_elsewhere(const signals_elsewhere&) = delete;
  signals_elsewhere& operator=(const signals_elsewhere&) = delete;
  ~signals_elsewhere() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

/// A thread for one piece of work at a time. After each it stays awake for a short time, for the next verb,
/// then sleeps. One user at a time.
class worker_thread {
 public:
  using work = void (*)(void* context, int worker) noexcept;

  /// Throws std::system_error if the system starts no more threads.
  explicit worker_thread(const processor_set& processors);
  worker_thread(const worker_thread&) = delete;
  worker_thread& operator=(const worker_thread&) = delete;
  ~worker_thread() { become(state::leaving); }

  /// Wakes the thread for work that comes soon.
  void call();
  /// Starts work(context, worker).
  void begin(work function, void* context, int worker);
  /// Waits until the work has ended.
  void wait();

  worker_thread* next = nullptr;  ///< in the list of its owner

 private:
  static constexpr int spins = 64;
  enum class state : int { idle, called, busy, leaving };

  void become(state next_state);
  void run();
  /// Looks for work, or the end, for a short time.
  [[nodiscard]] state look() const;

  const processor_set& processors_;
  std::atomic<state> state_{state::idle};
  work work_ = nullptr;
  void* context_ = nullptr;
  int worker_ = 0;
  std::jthread thread_;  // ends first: it uses the others
};

/// Threads that help the callers of verbs, made when needed. They are not the threads of a host execution
/// space, because they wait for the device. Kokkos locks a host instance while it computes, so other host
/// kernels would wait for the device as well, and the device may wait for one of these: a deadlock.
///
/// A thread belongs to one worker team until it is given back. Nothing is queued, so no worker team waits for
/// another. Kokkos::finalize destroys the pool. A child process has none of the threads, so its callers work
/// alone.
class worker_pool {
 public:
  static std::shared_ptr<worker_pool> get();

  worker_pool() = default;
  /// With threads that run on these processors, instead of those of the process.
  explicit worker_pool(const processor_set& processors) : processors_(processors) {}
  worker_pool(const worker_pool&) = delete;
  worker_pool& operator=(const worker_pool&) = delete;
  /// A child leaves the threads alone, and the locks that they may have held.
  ~worker_pool() {
    if (!has_threads())
      for (auto& thread : threads_) process_identity::get().abandon(thread.release());
  }

  /// A list of at most `count` threads, awake or waking up. The pool has at most `max_threads` threads, but a
  /// worker team gets at least one. The list is shorter if the system starts no more threads. Thread-safe.
  [[nodiscard]] worker_thread* hire(int count, int max_threads);
  void give_back(worker_thread* hired);

  /// Number of threads made so far.
  [[nodiscard]] std::size_t size() const;
  /// False in a child process.
  [[nodiscard]] bool has_threads() const noexcept { return process_.is_here(); }

 private:
  worker_thread* make();

  mutable std::mutex guard_;
  worker_thread* idle_ = nullptr;  ///< the last to work comes first: it may be awake
  processor_set processors_;
  std::vector<std::unique_ptr<worker_thread>> threads_;
  process_mark process_;
};

}  // namespace ferry::detail
