// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "processors.hpp"

#include <ferry/error.hpp>
#include <ferry/memory/detail/process_identity.hpp>
#include <ferry/memory/detail/process_wide.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

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

  /// A list of at most `count` threads, awake or waking up. The pool has at most `most` threads, but a
  /// worker team gets at least one. The list is shorter if the system starts no more threads. Thread-safe.
  [[nodiscard]] worker_thread* hire(int count, int most);
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
